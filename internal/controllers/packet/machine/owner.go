package machine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// owner is who ordered a machine: a Machine of Cluster API, or an EtcdadmCluster.
type owner struct {
	cluster string
	role    string
	// version is the Kubernetes version to run, failureDomain the metro.
	version, failureDomain string
	// dataSecret is the Secret with the userdata; empty if there is none yet.
	dataSecret string
	// started means that the device was active before, joined that it runs a node.
	started, joined bool
}

// loadOwner returns nil if the machine has no owner.
func loadOwner(ctx context.Context, c ctrlclient.Client, m *infrav1.PacketMachine) (*owner, error) {
	if ref := etcdOwner(m); ref != nil {
		return etcdMachine(ctx, c, m, ref)
	}
	machine, err := util.GetOwnerMachine(ctx, c, m.ObjectMeta)
	if machine == nil || err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	return nodeOwner(machine), nil
}

func nodeOwner(m *clusterv1.Machine) *owner {
	o := &owner{
		cluster: m.Spec.ClusterName, role: roleWorker, version: m.Spec.Version, failureDomain: m.Spec.FailureDomain,
		started: m.Spec.ProviderID != "", joined: m.Status.NodeRef.IsDefined(),
	}
	if util.IsControlPlaneMachine(m) {
		o.role = roleControlPlane
	}
	if name := m.Spec.Bootstrap.DataSecretName; name != nil {
		o.dataSecret = *name
	}
	return o
}

// etcdOwner returns the reference to the EtcdadmCluster of a machine, or nil.
func etcdOwner(m *infrav1.PacketMachine) *metav1.OwnerReference {
	i := slices.IndexFunc(m.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == "EtcdadmCluster" && ref.APIVersion == etcdv1.GroupVersion.String()
	})
	if i < 0 {
		return nil
	}
	return &m.OwnerReferences[i]
}

// etcdMachine returns the owner of a machine of external etcd. Its EtcdadmConfig has the same name
// and the same owner; whoever creates another one of that name does not provide the userdata.
func etcdMachine(ctx context.Context, c ctrlclient.Client, m *infrav1.PacketMachine, ref *metav1.OwnerReference) (*owner, error) {
	config := &etcdbootstrapv1.EtcdadmConfig{}
	if err := c.Get(ctx, ctrlclient.ObjectKeyFromObject(m), config); err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	if !slices.ContainsFunc(config.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
		return nil, fmt.Errorf("EtcdadmConfig %q belongs to another EtcdadmCluster", config.Name)
	}
	_, started := m.Annotations[etcdv1.StartedAnnotation]
	o := &owner{cluster: m.Labels[clusterv1.ClusterNameLabel], role: roleEtcd, version: config.Spec.Version, started: started}
	if name := config.Status.DataSecretName; name != nil {
		o.dataSecret = *name
	}
	return o, nil
}

// runsNode reports whether the machine becomes a node.
func (o *owner) runsNode() bool { return o != nil && o.role != roleEtcd }
