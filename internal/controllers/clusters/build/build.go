// Package build turns a cluster's configuration into the objects of Cluster API that it consists of. It is pure: it reads what it is given,
// asks nobody, and the same input always gives the same objects. Applying them is the business of package cluster.
//
//	Cluster, configs ──▶ Cluster, PacketCluster
//	                     KubeadmControlPlane ──▶ PacketMachineTemplate    <cluster>-control-plane-N
//	                     MachineDeployment   ──▶ PacketMachineTemplate    <cluster>-<group>-N
//	                                         └─▶ KubeadmConfigTemplate    <cluster>-<group>-N
//	                     MachineHealthChecks, HelmChartProxy
//
// Templates can't be changed, so that one whose content is to be another gets the next number. What goes onto machines is made by carriers,
// one file for each subject. Start with Objects.
package build

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Input is all that objects are made of.
type Input struct {
	// Config is the Cluster and what it refers to, with defaults.
	Config *spec.Config
	// Version is the version of Kubernetes for a minor such as "1.36".
	Version func(minor string) (string, error)
	// Project is where local machines are ordered. Clusters on Packet name theirs.
	Project string
	// Registry are the credentials for the registry mirror, if the cluster asks for some.
	Registry *Credentials
	// Charts is where the chart of the network is, as oci://host/path, and CNIVersion its version. Without Charts there is no network.
	Charts     string
	CNIVersion string
	// Now is what is there already; nil if nothing is.
	Now *Existing
}

// Credentials are a user and a password. They end up in a Secret, and nowhere else.
type Credentials struct{ Username, Password string }

// Existing are objects as they are now, so that a template whose content did not change keeps its name, and workers do not overtake their
// control plane.
type Existing struct {
	ControlPlane *controlplanev1.KubeadmControlPlane
	Workers      map[string]*clusterv1.MachineDeployment
	// Machines and Bootstraps are all templates of the cluster.
	Machines   []*infrav1.PacketMachineTemplate
	Bootstraps []*bootstrapv1.KubeadmConfigTemplate
	Network    *addonsv1.HelmChartProxy
}

// Set are the objects of one cluster.
type Set struct {
	Secrets        []*corev1.Secret
	Cluster        *clusterv1.Cluster
	Infrastructure *infrav1.PacketCluster
	Machines       []*infrav1.PacketMachineTemplate
	Bootstraps     []*bootstrapv1.KubeadmConfigTemplate
	ControlPlane   *controlplanev1.KubeadmControlPlane
	Workers        []*clusterv1.MachineDeployment
	HealthChecks   []*clusterv1.MachineHealthCheck
	Network        *addonsv1.HelmChartProxy

	// Held are the groups of workers that wait for the control plane to have their version.
	Held []string
}

// All are the objects in the order in which they are applied: each finds what it refers to.
func (s *Set) All() []client.Object {
	var out []client.Object
	for _, o := range s.Secrets {
		out = append(out, o)
	}
	for _, o := range s.Machines {
		out = append(out, o)
	}
	for _, o := range s.Bootstraps {
		out = append(out, o)
	}
	out = append(out, s.Infrastructure, s.Cluster, s.ControlPlane)
	for _, o := range s.Workers {
		out = append(out, o)
	}
	for _, o := range s.HealthChecks {
		out = append(out, o)
	}
	if s.Network != nil {
		out = append(out, s.Network)
	}
	return out
}

// Objects makes the objects of a cluster.
func Objects(in Input) (*Set, error) {
	if in.Now == nil {
		in.Now = &Existing{}
	}
	b := &builder{Input: in, cluster: in.Config.Cluster, set: &Set{}}
	for _, step := range []func() error{b.check, b.versions, b.secrets, b.infrastructure, b.controlPlane, b.workers, b.healthChecks, b.network} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("building the objects of cluster %q: %w", b.cluster.Name, err)
		}
	}
	for _, o := range b.set.All() {
		if err := stamp(o); err != nil {
			return nil, err
		}
	}
	return b.set, nil
}

// builder collects the objects.
type builder struct {
	Input

	cluster *anywherev1.Cluster
	// version is that of the control plane.
	version string
	set     *Set
}

// UnsupportedError says that a spec asks for something that can't be built.
type UnsupportedError struct{ Path, Problem string }

func (e *UnsupportedError) Error() string { return e.Path + ": " + e.Problem }

// check refuses what would otherwise be left out silently.
func (b *builder) check() error {
	if b.cluster.Spec.ExternalEtcdConfiguration != nil {
		return &UnsupportedError{"spec.externalEtcdConfiguration", "etcd runs on the control plane machines; remove this"}
	}
	for i, g := range b.cluster.Spec.WorkerNodeGroupConfigurations {
		if g.Name == controlPlaneGroup {
			return &UnsupportedError{fmt.Sprintf("spec.workerNodeGroupConfigurations[%d].name", i), "the name control-plane is that of the control plane's templates; choose another"}
		}
	}
	return nil
}

func (b *builder) versions() (err error) {
	b.version, err = b.Version(b.cluster.Spec.KubernetesVersion)
	return err
}

// meta is that of everything that belongs to the cluster.
func (b *builder) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name, Labels: b.labels(nil)}
}

// labels say whose an object is. Both Cluster API's label and ours are on everything.
func (b *builder) labels(more map[string]string) map[string]string {
	out := Labels(b.cluster)
	out[clusterv1.ClusterNameLabel] = b.cluster.Name
	maps.Copy(out, more)
	return out
}

// GroupLabel names the group of workers that something belongs to.
const GroupLabel = "clusters.anywhere.eks.amazonaws.com/worker-group"

// Labels are those that tell whose an object is.
func Labels(c metav1.Object) map[string]string {
	return map[string]string{anywherev1.ClusterNameLabel: c.GetName(), anywherev1.ClusterNamespaceLabel: c.GetNamespace()}
}
