package build

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// certificates adds SANs to the certificates of API servers.
func (b *builder) certificates(m *machines) error {
	m.config.ClusterConfiguration.APIServer.CertSANs = slices.Clone(b.cluster.Spec.ControlPlaneConfiguration.CertSANs)
	return nil
}

// podNetwork sets the prefix length of the Pod blocks of nodes.
func (b *builder) podNetwork(m *machines) error {
	if nodes := b.cluster.Spec.ClusterNetwork.Nodes; nodes != nil && nodes.CIDRMaskSize != nil {
		controllers := &m.config.ClusterConfiguration.ControllerManager
		controllers.ExtraArgs = append(controllers.ExtraArgs, argument("node-cidr-mask-size", strconv.Itoa(*nodes.CIDRMaskSize)))
	}
	return nil
}

// apiServerArguments adds the arguments of the user, which override ours. It must run last.
func (b *builder) apiServerArguments(m *machines) error {
	wanted := b.cluster.Spec.ControlPlaneConfiguration.APIServerExtraArgs
	api := &m.config.ClusterConfiguration.APIServer
	api.ExtraArgs = slices.DeleteFunc(api.ExtraArgs, func(a bootstrapv1.Arg) bool {
		_, own := wanted[a.Name]
		return own
	})
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		api.ExtraArgs = append(api.ExtraArgs, argument(name, wanted[name]))
	}
	return nil
}

// apiServer adds arguments of API servers, as pairs, and skips empty values.
func (m *machines) apiServer(pairs ...[2]string) {
	api := &m.config.ClusterConfiguration.APIServer
	for _, p := range pairs {
		if p[1] != "" {
			api.ExtraArgs = append(api.ExtraArgs, argument(p[0], p[1]))
		}
	}
}

// mount mounts a path of the machine into API servers.
func (m *machines) mount(name, path string, kind corev1.HostPathType) {
	api := &m.config.ClusterConfiguration.APIServer
	volume := bootstrapv1.HostPathMount{Name: name, HostPath: path, MountPath: path, PathType: kind}
	if kind == corev1.HostPathFile {
		volume.ReadOnly = ptr.To(true)
	}
	api.ExtraVolumes = append(api.ExtraVolumes, volume)
}
