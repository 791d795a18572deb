package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
)

// Objects are the objects of a cluster in the management plane.
type Objects struct {
	Clusters      clusterv1.ClusterList
	Infra         infrav1.PacketClusterList
	ControlPlanes controlplanev1.KubeadmControlPlaneList
	Etcds         etcdv1.EtcdadmClusterList
	Workers       clusterv1.MachineDeploymentList
	Machines      clusterv1.MachineList
	Devices       infrav1.PacketMachineList
	Bootstraps    bootstrapv1.KubeadmConfigList
	Releases      addonsv1.HelmReleaseProxyList
	// Hidden means that the caller may not read some of them.
	Hidden bool
}

// Objects reads the objects of a cluster, or of all clusters if the name is empty. It skips kinds
// that the caller may not read.
func (p *Plane) Objects(ctx context.Context, cluster string) (*Objects, error) {
	o := &Objects{}
	options := []client.ListOption{client.InNamespace(anywherev1.SystemNamespace)}
	if cluster != "" {
		options = append(options, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	}
	lists := []client.ObjectList{&o.Clusters, &o.Infra, &o.ControlPlanes, &o.Etcds, &o.Workers, &o.Machines, &o.Devices, &o.Bootstraps, &o.Releases}
	hidden := make([]bool, len(lists))
	group, ctx := errgroup.WithContext(ctx)
	for i, list := range lists {
		group.Go(func() error {
			err := p.Client.List(ctx, list, options...)
			hidden[i] = apierrors.IsForbidden(err)
			if hidden[i] || apimeta.IsNoMatchError(err) { // An older plane lacks newer kinds.
				return nil
			}
			return wrap(err, "reading the objects of cluster %q", cluster)
		})
	}
	err := group.Wait()
	o.Hidden = slices.Contains(hidden, true)
	return o, err
}

// Tree reads the objects of a cluster and arranges them.
func (p *Plane) Tree(ctx context.Context, c *anywherev1.Cluster) (*Node, error) {
	objects, err := p.Objects(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	git, err := p.git(ctx, c)
	if err != nil {
		return nil, err
	}
	root := Tree(c, objects)
	root.Children = append(root.Children, git...)
	return root, nil
}

// Tree arranges the objects of a cluster, each below the object that creates it.
func Tree(c *anywherev1.Cluster, o *Objects) *Node {
	root := node(kindCluster, c, c.Status.Conditions)
	root.Detail = fmt.Sprintf("Kubernetes %s", cmp.Or(c.Status.Version, c.Spec.KubernetesVersion))
	root.Paused, root.Behind = c.IsPaused(), c.Status.ObservedGeneration < c.Generation
	if c.Status.FailureMessage != nil && *c.Status.FailureMessage != "" {
		root.Failure = *c.Status.FailureMessage
	}
	for i := range o.Clusters.Items {
		if item := &o.Clusters.Items[i]; item.Name == c.Name {
			root.Children = append(root.Children, o.capi(item))
		}
	}
	for i := range o.Etcds.Items {
		root.add(o.etcd(&o.Etcds.Items[i]), anywherev1.EtcdReady, anywherev1.ControlPlaneInitialized, anywherev1.ControlPlaneReady, anywherev1.Ready)
	}
	for i := range o.Releases.Items {
		item := &o.Releases.Items[i]
		if item.Labels[addonsv1.HelmChartProxyLabel] == c.Name+"-cni" {
			root.add(node(kindRelease, item, item.Status.Conditions), anywherev1.DefaultCNIConfigured)
		}
	}
	return root
}

// CAPITree arranges the objects of a cluster that exists in Cluster API only.
func CAPITree(c *clusterv1.Cluster, o *Objects) *Node { return o.capi(c) }

// capi returns the Cluster of Cluster API with the objects below it.
func (o *Objects) capi(c *clusterv1.Cluster) *Node {
	n := node(kindCAPI, c, c.Status.Conditions)
	n.Detail = c.Status.Phase
	n.Paused = c.Spec.Paused != nil && *c.Spec.Paused
	n.Answers = []string{anywherev1.ControlPlaneInitialized, anywherev1.ControlPlaneReady, anywherev1.WorkersReady, anywherev1.Ready}
	for i := range o.Infra.Items {
		item := &o.Infra.Items[i]
		below := node(kindInfra, item, item.Status.Conditions)
		below.Detail = item.Spec.ControlPlaneEndpoint.Host
		n.add(below, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterRemoteConnectionProbeCondition)
	}
	for i := range o.ControlPlanes.Items {
		item := &o.ControlPlanes.Items[i]
		below := node(kindControlPlane, item, controlPlaneConditions(item))
		below.Detail = item.Spec.Version
		o.machines(below, func(m *clusterv1.Machine) bool { _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; return is })
		n.add(below, clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterControlPlaneAvailableCondition,
			clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterControlPlaneMachinesUpToDateCondition, clusterv1.ClusterAvailableCondition)
	}
	for i := range o.Workers.Items {
		item := &o.Workers.Items[i]
		below := node(kindWorkers, item, item.Status.Conditions)
		below.Detail = item.Spec.Template.Spec.Version
		o.machines(below, func(m *clusterv1.Machine) bool { return m.Labels[clusterv1.MachineDeploymentNameLabel] == item.Name })
		n.add(below, clusterv1.ClusterWorkersAvailableCondition, clusterv1.ClusterWorkerMachinesReadyCondition,
			clusterv1.ClusterWorkerMachinesUpToDateCondition, clusterv1.ClusterAvailableCondition)
	}
	return n
}

// controlPlaneConditions returns the conditions without that of etcd if it is external: Cluster API
// leaves it Unknown, and the EtcdadmCluster reports it.
func controlPlaneConditions(k *controlplanev1.KubeadmControlPlane) []metav1.Condition {
	if len(k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints) == 0 {
		return k.Status.Conditions
	}
	return slices.DeleteFunc(slices.Clone(k.Status.Conditions), func(c metav1.Condition) bool {
		return c.Type == controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition
	})
}

// etcd returns external etcd with its machines, which are no Machines of Cluster API.
func (o *Objects) etcd(e *etcdv1.EtcdadmCluster) *Node {
	n := node(kindEtcd, e, e.Status.Conditions)
	n.Detail = fmt.Sprintf("%d/%d members", e.Status.ReadyReplicas, ptr.Deref(e.Spec.Replicas, 1))
	n.Behind = e.Status.ObservedGeneration < e.Generation
	for i := range o.Devices.Items {
		if item := &o.Devices.Items[i]; item.Labels[etcdv1.MemberLabel] == e.Name {
			n.add(device(item), order[kindEtcd]...)
		}
	}
	return n
}

func device(m *infrav1.PacketMachine) *Node {
	n := node(kindDevice, m, m.Status.Conditions)
	if m.Status.InstanceStatus != nil {
		n.Detail = string(*m.Status.InstanceStatus)
	}
	if at, err := time.Parse(time.RFC3339, m.Annotations[etcdv1.ExpiresAnnotation]); err == nil {
		n.Detail += ", certificates are renewed on " + at.UTC().Format(time.DateOnly)
	}
	return n
}

// machines adds machines below their owner. They may decide any condition of the owner.
func (o *Objects) machines(owner *Node, belongs func(*clusterv1.Machine) bool) {
	for i := range o.Machines.Items {
		if item := &o.Machines.Items[i]; belongs(item) {
			owner.add(o.machine(item), order[owner.Kind]...)
		}
	}
}

func (o *Objects) machine(m *clusterv1.Machine) *Node {
	n := node(kindMachine, m, m.Status.Conditions)
	n.Detail = m.Status.Phase
	if expiry := m.Status.CertificatesExpiryDate; !expiry.IsZero() {
		n.Detail += ", certificates expire on " + expiry.UTC().Format(time.DateOnly)
	}
	for i := range o.Bootstraps.Items {
		if item := &o.Bootstraps.Items[i]; item.Name == m.Spec.Bootstrap.ConfigRef.Name {
			n.add(node(kindBootstrap, item, item.Status.Conditions), clusterv1.BootstrapConfigReadyCondition)
		}
	}
	for i := range o.Devices.Items {
		if item := &o.Devices.Items[i]; item.Name == m.Spec.InfrastructureRef.Name {
			n.add(device(item), clusterv1.InfrastructureReadyCondition, clusterv1.MachineNodeHealthyCondition, clusterv1.MachineNodeReadyCondition,
				clusterv1.ReadyCondition, clusterv1.AvailableCondition)
		}
	}
	return n
}

// add adds a child that decides the given conditions of the node.
func (n *Node) add(below *Node, answers ...string) {
	below.Answers = answers
	n.Children = append(n.Children, below)
}

func node(kind string, o client.Object, conditions []metav1.Condition) *Node {
	return &Node{
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Created: o.GetCreationTimestamp(), Conditions: conditions,
		Deleting: !o.GetDeletionTimestamp().IsZero(), Paused: o.GetAnnotations()[clusterv1.PausedAnnotation] == "true",
	}
}
