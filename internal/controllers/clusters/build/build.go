// Package build converts the spec of a cluster to objects of Cluster API. It is pure: the same
// input always gives the same objects. Package cluster applies them.
//
//	Cluster, configs ──▶ Cluster, PacketCluster
//	                     KubeadmControlPlane ──▶ PacketMachineTemplate    <cluster>-control-plane-N
//	                     MachineDeployment   ──▶ PacketMachineTemplate    <cluster>-<group>-N
//	                                         └─▶ KubeadmConfigTemplate    <cluster>-<group>-N
//	                     EtcdadmCluster      ──▶ PacketMachineTemplate    <cluster>-etcd-N
//	                     MachineHealthChecks, HelmChartProxy
//
// Templates are immutable: a change creates a template with the next number. Carriers, one file for
// each subject, add files and commands to machines. Start with Objects.
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
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Input is the input of Objects.
type Input struct {
	// Config is the Cluster and the objects that it references, with defaults.
	Config *spec.Config
	// Version returns the Kubernetes version of a minor version such as "1.36".
	Version func(minor string) (string, error)
	// Project is the project of local machines. A PacketDatacenterConfig names its own.
	Project string
	// Registry contains the credentials of the registry mirror, if the cluster needs them.
	Registry *Credentials
	// Encryption is where API servers get their keys from; nil for a cluster without its own.
	Encryption *encryption.Source
	// Charts is the location of the chart of the Pod network, as oci://host/path, and CNIVersion
	// its version. Without Charts, there is no network.
	Charts     string
	CNIVersion string
	// KubernetesVersion is the version of the control plane, and of workers without one of their own.
	// Empty means the one in the spec. A Kubernetes upgrade that waits for add-ons sets another one.
	KubernetesVersion string
	// HoldMachines keeps existing machines as they are; only their number may change. A change that
	// replaces them before a Kubernetes upgrade would still be under way when it begins.
	HoldMachines bool
	// HoldWorkers keeps the version of existing workers.
	HoldWorkers bool
	// Upgrade is the record of a Kubernetes upgrade in progress, or empty.
	Upgrade string
	// Now are the existing objects; nil if there are none.
	Now *Existing
}

// Credentials are a user name and a password. They are written to a Secret only.
type Credentials struct{ Username, Password string }

// Existing are the existing objects. Unchanged templates keep their names, and workers are not
// upgraded before their control plane.
type Existing struct {
	ControlPlane *controlplanev1.KubeadmControlPlane
	// Etcd is external etcd.
	Etcd    *etcdv1.EtcdadmCluster
	Workers map[string]*clusterv1.MachineDeployment
	// Machines and Bootstraps are all templates of the cluster.
	Machines   []*infrav1.PacketMachineTemplate
	Bootstraps []*bootstrapv1.KubeadmConfigTemplate
	Network    *addonsv1.HelmChartProxy
}

// Set contains the objects of one cluster.
type Set struct {
	Secrets        []*corev1.Secret
	Cluster        *clusterv1.Cluster
	Infrastructure *infrav1.PacketCluster
	Machines       []*infrav1.PacketMachineTemplate
	Bootstraps     []*bootstrapv1.KubeadmConfigTemplate
	// Etcd is external etcd, or nil.
	Etcd *etcdv1.EtcdadmCluster
	// ControlPlane is nil while it waits for external etcd: it stays as it is.
	ControlPlane *controlplanev1.KubeadmControlPlane
	Workers      []*clusterv1.MachineDeployment
	HealthChecks []*clusterv1.MachineHealthCheck
	Network      *addonsv1.HelmChartProxy

	// Held are the worker groups that wait for the control plane to have their version, or for
	// add-ons.
	Held []string
}

// All returns the objects in the order in which to apply them, so that references exist.
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
	out = append(out, s.controlPlane()...)
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

// controlPlane returns the control plane and what it needs. Cluster API adopts a control plane when
// the Cluster changes to refer to it, which therefore comes last with external etcd.
func (s *Set) controlPlane() []client.Object {
	switch {
	case s.Etcd == nil:
		return []client.Object{s.Infrastructure, s.Cluster, s.ControlPlane}
	case s.ControlPlane == nil:
		return []client.Object{s.Infrastructure, s.Cluster, s.Etcd}
	default:
		return []client.Object{s.Infrastructure, s.Etcd, s.ControlPlane, s.Cluster}
	}
}

// Objects returns the objects of a cluster.
func Objects(in Input) (*Set, error) {
	if in.Now == nil {
		in.Now = &Existing{}
	}
	b := &builder{Input: in, cluster: in.Config.Cluster, set: &Set{}}
	for _, step := range []func() error{b.check, b.versions, b.secrets, b.etcd, b.controlPlane, b.infrastructure, b.workers, b.healthChecks, b.network} {
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
	// version is the Kubernetes version of the control plane.
	version string
	set     *Set
}

// UnsupportedError means that a spec contains something unsupported.
type UnsupportedError struct{ Path, Problem string }

func (e *UnsupportedError) Error() string { return e.Path + ": " + e.Problem }

// check rejects fields that would otherwise be ignored.
func (b *builder) check() error {
	for i, g := range b.cluster.Spec.WorkerNodeGroupConfigurations {
		if g.Name == controlPlaneGroup {
			return &UnsupportedError{fmt.Sprintf("spec.workerNodeGroupConfigurations[%d].name", i), "the name control-plane is that of the control plane's templates; choose another"}
		}
	}
	return nil
}

func (b *builder) versions() (err error) {
	if b.version = b.KubernetesVersion; b.version != "" {
		return nil
	}
	b.version, err = b.Version(b.cluster.Spec.KubernetesVersion)
	return err
}

// meta returns the metadata of an object of the cluster.
func (b *builder) meta(name string) metav1.ObjectMeta { return Meta(b.cluster, name) }

// Meta returns the metadata of an object of a cluster.
func Meta(c *anywherev1.Cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name, Labels: allLabels(c, nil)}
}

// labels returns the labels of all objects: that of Cluster API and ours.
func (b *builder) labels(more map[string]string) map[string]string { return allLabels(b.cluster, more) }

func allLabels(c *anywherev1.Cluster, more map[string]string) map[string]string {
	out := Labels(c)
	out[clusterv1.ClusterNameLabel] = c.Name
	maps.Copy(out, more)
	return out
}

// GroupLabel holds the worker group of an object.
const GroupLabel = "clusters.anywhere.eks.amazonaws.com/worker-group"

// Labels returns the labels that lead from an object to its Cluster.
func Labels(c metav1.Object) map[string]string { return owner.Labels(c) }
