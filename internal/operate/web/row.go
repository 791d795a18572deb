package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// Health is the state of a cluster in a word.
type Health string

// Values of Health, worst first.
const (
	// Failing means that the cluster probably needs somebody's help.
	Failing     Health = "failing"
	Progressing Health = "progressing"
	Deleting    Health = "deleting"
	Paused      Health = "paused"
	Ready       Health = "ready"
)

// createdBy is the annotation with which the manager records who created a Cluster.
const createdBy = "drover.dev/created-by"

// maxWaiting bounds the sentence in a row.
const maxWaiting = 400

// Count is how many of something are ready, of how many.
type Count struct {
	Ready   int `json:"ready"`
	Total   int `json:"total"`
	Failed  int `json:"failed,omitempty"`
	Drifted int `json:"drifted,omitempty"`
}

// Row is a cluster in the list.
type Row struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Health    Health `json:"health"`
	// Waiting is what the cluster waits for: the message of the root cause. Cause is the object and
	// the condition that it is from.
	Waiting string `json:"waiting,omitempty"`
	Cause   string `json:"cause,omitempty"`
	// Version is the Kubernetes version of the control plane, Want the one in the spec if it
	// differs, and Versions all versions of machines if there are several.
	Version  string   `json:"version,omitempty"`
	Want     string   `json:"want,omitempty"`
	Versions []string `json:"versions,omitempty"`
	// ControlPlane and Workers count machines.
	ControlPlane Count `json:"controlPlane"`
	Workers      Count `json:"workers"`
	AddOns       Count `json:"addOns"`
	Packages     Count `json:"packages"`
	// Git names the FluxConfig of a cluster whose spec is in Git, and GitRevision is the commit that
	// Flux has applied, if the user may know it.
	Git         string `json:"git,omitempty"`
	GitRevision string `json:"gitRevision,omitempty"`
	// Manager is the management cluster. A management cluster names itself.
	Manager string `json:"manager,omitempty"`
	Metro   string `json:"metro,omitempty"`
	// Owner is the user who created the cluster.
	Owner   string            `json:"owner,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Created metav1.Time       `json:"created"`
	// Changed is when a condition of the cluster or of one of its objects changed last.
	Changed metav1.Time `json:"changed"`
	// Revision differs whenever anything that the page of the cluster shows may have changed.
	Revision string `json:"revision"`
}

// objects returns the cached objects of a cluster. They are shared and must not be changed.
func (v *View) objects(namespace, name string) *inspect.Objects {
	o := &inspect.Objects{}
	copyItems(&o.Clusters.Items, of[*clusterv1.Cluster](v.stores[kindCAPI], namespace, name))
	copyItems(&o.Infra.Items, of[*infrav1.PacketCluster](v.stores[kindInfra], namespace, name))
	copyItems(&o.ControlPlanes.Items, of[*controlplanev1.KubeadmControlPlane](v.stores[kindControlPlane], namespace, name))
	copyItems(&o.Etcds.Items, of[*etcdv1.EtcdadmCluster](v.stores[kindEtcd], namespace, name))
	copyItems(&o.Workers.Items, of[*clusterv1.MachineDeployment](v.stores[kindWorkers], namespace, name))
	copyItems(&o.Machines.Items, of[*clusterv1.Machine](v.stores[kindMachines], namespace, name))
	copyItems(&o.Devices.Items, of[*infrav1.PacketMachine](v.stores[kindDevices], namespace, name))
	copyItems(&o.Bootstraps.Items, of[*bootstrapv1.KubeadmConfig](v.stores[kindBootstraps], namespace, name))
	copyItems(&o.Releases.Items, of[*addonsv1.HelmReleaseProxy](v.stores[kindReleases], namespace, name))
	for _, s := range v.stores {
		o.Hidden = o.Hidden || !s.kind.aside && s.hidden()
	}
	return o
}

// copyItems copies objects by name, so that trees don't depend on the order of a cache.
func copyItems[T any, P interface {
	*T
	metav1.Object
}](into *[]T, found []P) {
	slices.SortFunc(found, func(a, b P) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, one := range found {
		*into = append(*into, *one)
	}
}

// tree arranges the objects of a cluster, and what keeps changes in Git from reaching it.
func (v *View) tree(described *anywherev1.Cluster, plain *clusterv1.Cluster, o *inspect.Objects) *inspect.Node {
	if described == nil {
		return inspect.CAPITree(plain, o)
	}
	root, git := inspect.Tree(described, o), v.inGit(described)
	root.Children = append(root.Children, inspect.GitNodes(described.Name, git.config, git.changes)...)
	return root
}

// row returns the row of a cluster, and when it must be computed again. It is nil if there is no
// such cluster.
func (v *View) row(key Key, now time.Time) (*Row, time.Time) {
	described, plain, o := v.cluster(key)
	if o == nil {
		return nil, time.Time{}
	}
	root := v.tree(described, plain, o)
	row := &Row{ID: key.String(), Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Created: root.Created}
	if described != nil {
		describe(row, described)
		row.GitRevision = v.inGit(described).revision()
	} else {
		describePlain(row, plain)
	}
	until := assess(row, root, now)
	row.machines(o)
	row.AddOns = addOns(o.Releases.Items)
	row.Packages = packages(of[*packagesv1.Package](v.stores[kindPackages], "", key.Name), v.driftedReleases(key.Name))
	for i := range o.Infra.Items {
		row.Metro = cmp.Or(row.Metro, o.Infra.Items[i].Spec.Metro, o.Infra.Items[i].Spec.Facility)
	}
	row.Changed = lastChange(root)
	row.Revision = v.revision(described, plain, o, key.Name)
	return row, until
}

// describe fills in what the spec and the status of a Cluster of Drover say.
func describe(row *Row, c *anywherev1.Cluster) {
	row.Version, row.Labels, row.Manager = cmp.Or(c.Status.Version, c.Spec.KubernetesVersion), c.Labels, c.ManagedBy()
	if c.Status.Version != "" && !strings.HasPrefix(strings.TrimPrefix(c.Status.Version, "v")+".", c.Spec.KubernetesVersion+".") {
		row.Want = c.Spec.KubernetesVersion
	}
	row.Owner = c.Annotations[createdBy]
	row.ControlPlane, row.Workers = parseCount(c.Status.ControlPlane), parseCount(c.Status.Workers)
	if ref := c.Spec.GitOpsRef; ref != nil {
		row.Git = ref.Name
	}
}

func describePlain(row *Row, c *clusterv1.Cluster) {
	row.Labels = c.Labels
	if s := c.Status.ControlPlane; s != nil {
		row.ControlPlane = Count{Ready: int(ptr.Deref(s.ReadyReplicas, 0)), Total: int(ptr.Deref(s.DesiredReplicas, 0))}
	}
	if s := c.Status.Workers; s != nil {
		row.Workers = Count{Ready: int(ptr.Deref(s.ReadyReplicas, 0)), Total: int(ptr.Deref(s.DesiredReplicas, 0))}
	}
}

// parseCount parses a status such as 2/3.
func parseCount(status string) Count {
	var c Count
	if _, err := fmt.Sscanf(status, "%d/%d", &c.Ready, &c.Total); err != nil {
		return Count{}
	}
	return c
}

// assess fills in the health, and what the cluster waits for. It returns until when that holds.
func assess(row *Row, root *inspect.Node, now time.Time) time.Time {
	answer := inspect.Why(root, now)
	stalled, until := answer.Stalled(now)
	switch {
	case root.Deleting:
		row.Health = Deleting
	case root.Paused:
		row.Health = Paused
	case answer.Ready:
		row.Health = Ready
		return time.Time{}
	case stalled:
		row.Health = Failing
	default:
		row.Health = Progressing
	}
	deepest := answer.Deepest()
	row.Waiting = text.TruncateTo(strings.Join(strings.Fields(cmp.Or(deepest.Message, deepest.Reason)), " "), maxWaiting)
	row.Cause = strings.TrimSpace(fmt.Sprintf("%s %s %s", deepest.Kind, deepest.Name, deepest.Condition))
	if row.Health != Progressing {
		return time.Time{}
	}
	return until
}

// machines fills in the versions of machines.
func (row *Row) machines(o *inspect.Objects) {
	var all []string
	for i := range o.Machines.Items {
		if version := o.Machines.Items[i].Spec.Version; version != "" && !slices.Contains(all, version) {
			all = append(all, version)
		}
	}
	slices.Sort(all)
	if len(all) > 1 {
		row.Versions = all
	}
	for i := range o.ControlPlanes.Items {
		k := &o.ControlPlanes.Items[i]
		if row.Kind == capi {
			row.Version = cmp.Or(k.Status.Version, k.Spec.Version)
			if row.Version != k.Spec.Version {
				row.Want = k.Spec.Version
			}
		}
	}
}

func addOns(releases []addonsv1.HelmReleaseProxy) Count {
	c := Count{Total: len(releases)}
	for i := range releases {
		conditions := releases[i].Status.Conditions
		switch {
		case apimeta.IsStatusConditionTrue(conditions, clusterv1.ReadyCondition):
			c.Ready++
		case releases[i].Status.Attempt != nil:
			c.Failed++
		}
		if apimeta.IsStatusConditionFalse(conditions, addonsv1.ReleaseInSync) {
			c.Drifted++
		}
	}
	return c
}

// driftedReleases returns the releases on a cluster that somebody changed there. That of a Package
// has its namespace and name.
func (v *View) driftedReleases(cluster string) map[client.ObjectKey]bool {
	out := map[client.ObjectKey]bool{}
	for _, r := range of[*addonsv1.HelmReleaseProxy](v.stores[kindReleases], "", cluster) {
		if apimeta.IsStatusConditionFalse(r.Status.Conditions, addonsv1.ReleaseInSync) {
			out[client.ObjectKeyFromObject(r)] = true
		}
	}
	return out
}

func packages(all []*packagesv1.Package, drifted map[client.ObjectKey]bool) Count {
	c := Count{Total: len(all)}
	for _, p := range all {
		if drifted[client.ObjectKeyFromObject(p)] {
			c.Drifted++
		}
		switch p.Status.State {
		case packagesv1.StateInstalled:
			c.Ready++
		case packagesv1.StateUnknown:
			c.Failed++
		}
	}
	return c
}

// lastChange returns when a condition in a tree changed last.
func lastChange(root *inspect.Node) metav1.Time {
	last := root.Created
	root.Walk(func(n *inspect.Node, _ int) {
		for _, c := range n.Conditions {
			if c.LastTransitionTime.After(last.Time) {
				last = c.LastTransitionTime
			}
		}
	})
	return last
}

// revision returns a digest of the versions of all objects of a cluster.
func (v *View) revision(described *anywherev1.Cluster, plain *clusterv1.Cluster, o *inspect.Objects, name string) string {
	d := newDigest()
	if described != nil {
		d.add(described)
		v.inGit(described).digest(d)
	}
	if plain != nil {
		d.add(plain)
	}
	addAll(d, o.Clusters.Items)
	addAll(d, o.Infra.Items)
	addAll(d, o.ControlPlanes.Items)
	addAll(d, o.Etcds.Items)
	addAll(d, o.Workers.Items)
	addAll(d, o.Machines.Items)
	addAll(d, o.Devices.Items)
	for _, p := range of[*packagesv1.Package](v.stores[kindPackages], "", name) {
		d.add(p)
	}
	for _, r := range of[*addonsv1.HelmReleaseProxy](v.stores[kindReleases], "", name) {
		d.add(r) // those of packages are in other namespaces
	}
	return d.String()
}
