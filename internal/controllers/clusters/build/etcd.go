package build

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Files on control plane machines with which API servers connect to external etcd. Cluster API
// writes them from the Secrets that the EtcdadmCluster's controller creates.
const (
	etcdAuthorityFile = "/etc/kubernetes/pki/etcd/ca.crt"
	etcdClientFile    = "/etc/kubernetes/pki/apiserver-etcd-client.crt"
	etcdClientKeyFile = "/etc/kubernetes/pki/apiserver-etcd-client.key"
)

// etcd builds the EtcdadmCluster of external etcd and the template of its machines.
func (b *builder) etcd() error {
	wanted := b.cluster.Spec.ExternalEtcdConfiguration
	if wanted == nil {
		return nil
	}
	used := ""
	if now := b.Now.Etcd; now != nil {
		used = now.Spec.InfrastructureTemplate.Name
	}
	template, err := b.machineTemplate(spec.EtcdGroup, used, wanted.MachineGroupRef)
	if err != nil {
		return err
	}
	m := &machines{ref: wanted.MachineGroupRef}
	if err := b.configure(m, etcdMembers); err != nil {
		return err
	}
	out := &etcdv1.EtcdadmCluster{ObjectMeta: b.meta(EtcdName(b.cluster.Name))}
	out.Spec = etcdv1.EtcdadmClusterSpec{
		Replicas: ptr.To(int32(wanted.Count)),
		InfrastructureTemplate: corev1.ObjectReference{
			APIVersion: infrav1.GroupVersion.String(), Kind: "PacketMachineTemplate", Name: template,
		},
		EtcdadmConfigSpec: etcdConfig(m.config),
	}
	out.Spec.EtcdadmConfigSpec.Version = b.version
	b.renewEtcd(out)
	b.set.Etcd = out
	return nil
}

// etcdConfig converts the configuration that carriers have extended.
func etcdConfig(from bootstrapv1.KubeadmConfigSpec) etcdbootstrapv1.EtcdadmConfigSpec {
	out := etcdbootstrapv1.EtcdadmConfigSpec{PreEtcdadmCommands: from.PreKubeadmCommands}
	for _, u := range from.Users {
		out.Users = append(out.Users, etcdbootstrapv1.User{Name: u.Name, Sudo: u.Sudo, SSHAuthorizedKeys: u.SSHAuthorizedKeys})
	}
	for _, f := range from.Files {
		file := etcdbootstrapv1.File{Path: f.Path, Owner: f.Owner, Permissions: f.Permissions, Content: f.Content}
		if secret := f.ContentFrom.Secret; secret.Name != "" {
			file.ContentFrom = &etcdbootstrapv1.FileSource{Secret: etcdbootstrapv1.SecretFileSource{Name: secret.Name, Key: secret.Key}}
		}
		out.Files = append(out.Files, file)
	}
	return out
}

// holdsControlPlane reports whether the control plane waits for external etcd: it is created once
// etcd has endpoints, and changes after etcd does. Endpoints stay the same unless the number of
// members changes, so replacing members replaces no control plane machine.
func (b *builder) holdsControlPlane() bool {
	if b.set.Etcd == nil {
		return false
	}
	now := b.Now.Etcd
	return now == nil || !equality.Semantic.DeepEqual(now.Spec, b.set.Etcd.Spec) || !EtcdReady(now)
}

// EtcdReady reports whether etcd has reached its spec and all of its members are healthy.
func EtcdReady(e *etcdv1.EtcdadmCluster) bool {
	return e.Status.ObservedGeneration == e.Generation && e.Status.Endpoints != "" && meta.IsStatusConditionTrue(e.Status.Conditions, clusterv1.ReadyCondition)
}

// externalEtcd makes API servers use external etcd.
func (b *builder) externalEtcd(m *machines) error {
	if b.set.Etcd == nil {
		return nil
	}
	m.config.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{
		Endpoints: strings.Split(b.Now.Etcd.Status.Endpoints, ","),
		CAFile:    etcdAuthorityFile, CertFile: etcdClientFile, KeyFile: etcdClientKeyFile,
	}
	return nil
}
