package build

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// nodeDeletionTimeout is for how many seconds after the deletion of a machine Cluster API tries to
// delete its Node. By default, it gives up after ten, which is less than a drain takes, or than the
// API of the cluster is away while its endpoint moves. Nobody would delete that Node later.
const nodeDeletionTimeout = 5 * 60

// machines is a group of identical machines.
type machines struct {
	ref     *anywherev1.Ref
	labels  map[string]string
	taints  *[]corev1.Taint
	kubelet *runtime.RawExtension
	// config is their bootstrap configuration, which carriers extend.
	config bootstrapv1.KubeadmConfigSpec
}

// setting adds one subject of a spec to machines.
type setting func(*builder, *machines) error

// everywhere are the carriers for all nodes, controlPlanes those for control plane machines, and
// etcdMembers those for machines of external etcd, which are no nodes.
var (
	everywhere    = []setting{(*builder).users, (*builder).kubelet, (*builder).mirror, (*builder).egress}
	etcdMembers   = []setting{(*builder).users, (*builder).mirror, (*builder).egress}
	controlPlanes = []setting{
		(*builder).externalEtcd, (*builder).startupProbes, (*builder).certificates, (*builder).podNetwork, (*builder).audit, (*builder).oidc, (*builder).podIAM, (*builder).encryption, (*builder).webhooks, (*builder).apiServerArguments,
	}
)

func (b *builder) configure(m *machines, lists ...[]setting) error {
	for _, list := range lists {
		for _, carry := range list {
			if err := carry(b, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// node returns the node registration. The machine replaces the placeholder by its ID.
func (m *machines) node() bootstrapv1.NodeRegistrationOptions {
	out := bootstrapv1.NodeRegistrationOptions{
		KubeletExtraArgs: []bootstrapv1.Arg{argument("provider-id", "equinixmetal://{{ v1.instance_id }}")},
		Taints:           m.taints,
	}
	if registered, _ := splitLabels(m.labels); len(registered) > 0 {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(registered)) {
			pairs = append(pairs, key+"="+registered[key])
		}
		out.KubeletExtraArgs = append(out.KubeletExtraArgs, argument("node-labels", strings.Join(pairs, ",")))
	}
	return out
}

// splitLabels separates the labels that kubelets set from those that Cluster API sets. Kubelets
// with a label that they may not set, such as a role, do not start.
func splitLabels(labels map[string]string) (registered, propagated map[string]string) {
	registered, propagated = map[string]string{}, map[string]string{}
	for key, value := range labels {
		domain, _, _ := strings.Cut(key, "/")
		switch {
		case domain == clusterv1.NodeRoleLabelPrefix, within(domain, clusterv1.NodeRestrictionLabelDomain), within(domain, clusterv1.ManagedNodeLabelDomain):
			propagated[key] = value
		default:
			registered[key] = value
		}
	}
	return registered, propagated
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func argument(name, value string) bootstrapv1.Arg {
	return bootstrapv1.Arg{Name: name, Value: ptr.To(value)}
}

// file adds a file that only root can read.
func (m *machines) file(path, content string) {
	m.config.Files = append(m.config.Files, bootstrapv1.File{Path: path, Owner: "root:root", Permissions: "0600", Content: content})
}

// users adds the users of the machine config.
func (b *builder) users(m *machines) error {
	if b.Config.Packet == nil {
		return nil
	}
	config, err := b.machineConfig(m.ref)
	if err != nil {
		return err
	}
	for _, u := range config.Spec.Users {
		m.config.Users = append(m.config.Users, bootstrapv1.User{
			Name: u.Name, Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: slices.Clone(u.SSHAuthorizedKeys),
		})
	}
	return nil
}
