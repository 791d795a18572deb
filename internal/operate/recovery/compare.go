package recovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/model/backup/objects"
)

// namesShown bounds how many machines a message lists.
const namesShown = 5

// providerPrefix is in front of the ID of a device in the ID of a provider.
const providerPrefix = "equinixmetal://"

// Verdict is what becomes of a cluster in a backup.
type Verdict string

const (
	// Intact means that the cluster has exactly the machines of the backup.
	Intact Verdict = "intact"
	// Changed means that machines were added or removed after the backup. The cluster stays paused.
	Changed Verdict = "changed"
	// Gone means that no machine of the cluster exists. It is not restored.
	Gone Verdict = "gone"
	// Deleted means that the cluster was being deleted. It is not restored.
	Deleted Verdict = "deleted"
	// Unknown means that machines exist and the backup has no cluster of that name. They are left
	// alone.
	Unknown Verdict = "unknown"
)

// Machine is a machine of a cluster.
type Machine struct {
	Name string `json:"name"`
	// Device is the ID of its device; empty if the backup has none.
	Device string `json:"device,omitempty"`
}

// Cluster is a cluster of a backup, or of machines that a backup doesn't know.
type Cluster struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Missing are the machines of the backup that don't exist, and Added the others.
	Missing []Machine `json:"missing,omitempty"`
	Added   []Machine `json:"added,omitempty"`
}

// Restored reports whether the objects of the cluster are restored.
func (c Cluster) Restored() bool { return c.Verdict == Intact || c.Verdict == Changed }

// Device is a device of the metal service.
type Device struct {
	ID, Hostname string
	Tags         []string
}

// Message says what becomes of a cluster, in a line.
func (c Cluster) Message() string {
	switch c.Verdict {
	case Changed:
		return fmt.Sprintf("cluster %s stays paused, because its machines have changed since the backup: %s", c.Name, c.changes())
	case Gone:
		return fmt.Sprintf("cluster %s is not restored, because none of its machines exists", c.Name)
	case Deleted:
		return fmt.Sprintf("cluster %s is not restored, because it was being deleted; %s", c.Name, c.changes())
	case Unknown:
		return fmt.Sprintf("cluster %s is not in the backup, and its machines are left alone: %s", c.Name, listNames(c.Added))
	}
	return fmt.Sprintf("cluster %s is taken over with all of its machines", c.Name)
}

func (c Cluster) changes() string {
	var parts []string
	if len(c.Missing) > 0 {
		parts = append(parts, "missing "+listNames(c.Missing))
	}
	if len(c.Added) > 0 {
		parts = append(parts, "not in the backup "+listNames(c.Added))
	}
	return cmp.Or(strings.Join(parts, "; "), "no machines are left")
}

func listNames(machines []Machine) string {
	names := make([]string, 0, len(machines))
	for _, m := range machines {
		names = append(names, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, "a machine"), cmp.Or(m.Device, "no device")))
	}
	return text.FirstN(names, namesShown)
}

// known is what a backup has of a cluster.
type known struct {
	machines []Machine
	deleted  bool
}

// Compare decides about each workload cluster, by its machines in the backup and those that exist.
// The devices are those of all projects that the clusters use.
func Compare(set objects.Set, manager string, devices []Device) ([]Cluster, error) {
	all, err := clustersOf(set)
	if err != nil {
		return nil, err
	}
	existing := byCluster(all, devices)
	names := slices.Collect(maps.Keys(all))
	for name := range existing {
		if all[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Cluster
	for _, name := range names {
		if name != manager {
			out = append(out, decide(name, all[name], existing[name]))
		}
	}
	return out, nil
}

// clustersOf returns the clusters of a backup by name.
func clustersOf(set objects.Set) (map[string]*known, error) {
	all := map[string]*known{}
	for _, u := range set.Of(clusterv1.GroupVersion.WithKind("Cluster").GroupKind()) {
		all[u.GetName()] = &known{deleted: u.GetDeletionTimestamp() != nil}
	}
	clusters, err := set.Clusters()
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		if all[c.Name] != nil && !c.DeletionTimestamp.IsZero() {
			all[c.Name].deleted = true
		}
	}
	for _, u := range set.Of(infrav1.GroupVersion.WithKind("PacketMachine").GroupKind()) {
		m := &infrav1.PacketMachine{}
		if err := objects.As(u, m); err != nil {
			return nil, err
		}
		if of := all[m.Labels[clusterv1.ClusterNameLabel]]; of != nil {
			id, _ := strings.CutPrefix(ptr.Deref(m.Spec.ProviderID, ""), providerPrefix)
			of.machines = append(of.machines, Machine{Name: m.Name, Device: id})
		}
	}
	return all, nil
}

// byCluster assigns devices to clusters: by what the backup has, or by their tags.
func byCluster(all map[string]*known, devices []Device) map[string][]Device {
	owner := map[string]string{}
	for name, k := range all {
		for _, m := range k.machines {
			if m.Device != "" {
				owner[m.Device] = name
			}
		}
	}
	out := map[string][]Device{}
	for _, d := range devices {
		name := cmp.Or(owner[d.ID], tags.ParseMachine(d.Tags).Cluster)
		if name != "" { // Otherwise somebody else ordered it.
			out[name] = append(out[name], d)
		}
	}
	return out
}

func decide(name string, backup *known, devices []Device) Cluster {
	c := Cluster{Name: name}
	if backup == nil {
		c.Verdict, c.Added = Unknown, machinesOf(devices)
		return c
	}
	left := slices.Clone(devices)
	found := 0
	for _, m := range backup.machines {
		i := slices.IndexFunc(left, func(d Device) bool { return isMachine(d, m) })
		switch {
		case i >= 0:
			left, found = slices.Delete(left, i, i+1), found+1
		case m.Device != "":
			c.Missing = append(c.Missing, m)
		}
	}
	c.Added = machinesOf(left)
	switch {
	case backup.deleted:
		c.Verdict = Deleted
	case len(c.Missing) > 0 && len(devices) == 0:
		c.Verdict = Gone
	case len(c.Missing)+len(c.Added) > 0:
		c.Verdict = Changed
	default:
		c.Verdict = Intact
	}
	return c
}

// isMachine reports whether a device is that of a machine. One that was ordered right before the
// backup is known by its name only.
func isMachine(d Device, m Machine) bool {
	if m.Device != "" {
		return d.ID == m.Device
	}
	return tags.ParseMachine(d.Tags).Name == m.Name
}

func machinesOf(devices []Device) []Machine {
	out := make([]Machine, 0, len(devices))
	for _, d := range devices {
		out = append(out, Machine{Name: cmp.Or(d.Hostname, tags.ParseMachine(d.Tags).Name), Device: d.ID})
	}
	slices.SortFunc(out, func(a, b Machine) int { return cmp.Compare(a.Name+a.Device, b.Name+b.Device) })
	return out
}
