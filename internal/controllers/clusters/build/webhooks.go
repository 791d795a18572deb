package build

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/config"
)

// webhooks makes the API servers of a management cluster identify themselves to Drover's webhooks,
// which reject everyone else, with the certificate that they present to extensions.
func (b *builder) webhooks(m *machines) error {
	if !b.cluster.IsSelfManaged() {
		return nil
	}
	m.file(config.WebhookAccessFile, string(config.WebhookKubeconfig(
		config.WebhookService+"."+config.Namespace+".svc", "/etc/kubernetes/pki/front-proxy-client.crt", "/etc/kubernetes/pki/front-proxy-client.key",
	)))
	m.file(config.AdmissionFile, string(config.AdmissionConfiguration(config.WebhookAccessFile)))
	m.apiServer([2]string{config.AdmissionFlag, config.AdmissionFile})
	m.mount("drover-webhooks", config.AdmissionDir, corev1.HostPathDirectory)
	return nil
}
