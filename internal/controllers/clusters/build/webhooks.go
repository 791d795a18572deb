package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/drover-dev/drover/config"
)

// webhooks makes the API servers of a management cluster identify themselves to Drover's webhooks,
// which reject everyone else, with the certificate that they present to extensions. A cluster that
// predates this gets it with its next Kubernetes version, which replaces its machines anyway.
func (b *builder) webhooks(m *machines) error {
	version, err := b.Version(b.cluster.Spec.KubernetesVersion)
	if err != nil || !b.cluster.IsSelfManaged() || b.staysWithoutCertificates(version) {
		return err
	}
	m.file(config.WebhookAccessFile, string(config.WebhookKubeconfig(
		config.WebhookService+"."+config.Namespace+".svc", "/etc/kubernetes/pki/front-proxy-client.crt", "/etc/kubernetes/pki/front-proxy-client.key",
	)))
	m.file(config.AdmissionFile, string(config.AdmissionConfiguration(config.WebhookAccessFile)))
	m.apiServer([2]string{config.AdmissionFlag, config.AdmissionFile})
	m.mount("drover-webhooks", config.AdmissionDir, corev1.HostPathDirectory)
	return nil
}

// staysWithoutCertificates reports whether the control plane lacks the files and keeps its version.
func (b *builder) staysWithoutCertificates(version string) bool {
	now := b.Now.ControlPlane
	return now != nil && now.Spec.Version == version && !slices.ContainsFunc(now.Spec.KubeadmConfigSpec.Files, func(f bootstrapv1.File) bool {
		return f.Path == config.AdmissionFile
	})
}
