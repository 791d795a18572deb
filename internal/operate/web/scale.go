package web

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// controlPlaneGroup is the group of control plane machines. No worker group can have the name.
const controlPlaneGroup = "control plane"

// Group is a group of machines.
type Group struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// Counts are the only ones that the group can have, if there are such.
	Counts []int `json:"counts,omitempty"`
	// Auto means that an autoscaler chooses the count.
	Auto bool `json:"auto,omitempty"`
}

// groups returns the groups of machines that can be scaled.
func (t target) groups() []Group {
	if t.described != nil {
		return describedGroups(&t.described.Spec)
	}
	if t.plain.Spec.Topology.IsDefined() {
		return nil // its ClusterClass owns the groups
	}
	var out []Group
	for i := range t.objects.Workers.Items {
		m := &t.objects.Workers.Items[i]
		out = append(out, Group{Name: m.Name, Count: int(ptr.Deref(m.Spec.Replicas, 1))})
	}
	for i := range t.objects.ControlPlanes.Items {
		k := &t.objects.ControlPlanes.Items[i]
		out = append(out, Group{Name: controlPlaneGroup, Count: int(ptr.Deref(k.Spec.Replicas, 1)), Counts: []int{1, 3, 5}})
	}
	return out
}

func describedGroups(s *anywherev1.ClusterSpec) []Group {
	var out []Group
	for _, g := range s.WorkerNodeGroupConfigurations {
		out = append(out, Group{Name: g.Name, Count: ptr.Deref(g.Count, 1), Auto: g.AutoScalingConfiguration != nil})
	}
	counts := []int{1, 3, 5}
	if r := s.ControlPlaneConfiguration.UpgradeRolloutStrategy; r != nil && (r.Type == anywherev1.InPlaceStrategyType || r.RollingUpdate != nil && r.RollingUpdate.MaxSurge == 0) {
		counts = []int{3, 5} // as the webhook requires
	}
	return append(out, Group{Name: controlPlaneGroup, Count: s.ControlPlaneConfiguration.Count, Counts: counts})
}

// scaling adds the patch that sets the count of a group.
func (t target) scaling(c *change, asked request) error {
	all := t.groups()
	i := slices.IndexFunc(all, func(g Group) bool { return g.Name == asked.Group })
	switch {
	case i < 0:
		return &usageError{fmt.Sprintf("the cluster has no machine group %q", asked.Group), "Reload the page."}
	case asked.Count == nil || *asked.Count < 0:
		return &usageError{"the count must be a number of machines, 0 or more", ""}
	case all[i].Auto:
		return &usageError{fmt.Sprintf("an autoscaler chooses the count of worker group %q", asked.Group), "Change its bounds in the spec."}
	case all[i].Counts != nil && !slices.Contains(all[i].Counts, *asked.Count):
		return &usageError{fmt.Sprintf("the %s can't have %d machines", asked.Group, *asked.Count), fmt.Sprintf("Choose one of %v.", all[i].Counts)}
	}
	c.notes = scaleNotes(all[i], *asked.Count)
	switch {
	case t.described != nil && asked.Group == controlPlaneGroup:
		c.patch = []operation{{"replace", "/spec/controlPlaneConfiguration/count", *asked.Count}}
	case t.described != nil:
		c.patch = []operation{
			{"test", fmt.Sprintf("/spec/workerNodeGroupConfigurations/%d/name", i), asked.Group},
			{"add", fmt.Sprintf("/spec/workerNodeGroupConfigurations/%d/count", i), *asked.Count},
		}
	case asked.Group == controlPlaneGroup:
		c.object.SetAPIVersion(controlplanev1.GroupVersion.String())
		c.object.SetKind("KubeadmControlPlane")
		c.object.SetName(t.objects.ControlPlanes.Items[0].Name)
		c.patch = []operation{{"add", "/spec/replicas", *asked.Count}}
	default:
		c.object.SetKind("MachineDeployment")
		c.object.SetName(asked.Group)
		c.patch = []operation{{"add", "/spec/replicas", *asked.Count}}
	}
	return nil
}

func scaleNotes(g Group, count int) []string {
	var out []string
	if removed := g.Count - count; removed > 0 {
		out = append(out, fmt.Sprintf("Drains and deletes %d machines.", removed))
	}
	if g.Name == controlPlaneGroup && count == 1 && g.Count != 1 {
		out = append(out, "A control plane of one machine does not survive the loss of it.")
	}
	return out
}
