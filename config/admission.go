package config

import "fmt"

// WebhookClient is the common name of the certificate that the API server of an embedded plane
// presents to webhooks.
const WebhookClient = "drover:webhook-client"

// Files on the control plane machines of a management cluster, and the flag that names them.
const (
	AdmissionDir      = "/etc/kubernetes/drover"
	AdmissionFile     = AdmissionDir + "/admission.yaml"
	WebhookAccessFile = AdmissionDir + "/webhooks.kubeconfig"
	AdmissionFlag     = "admission-control-config-file"
)

// AdmissionConfiguration returns the file that makes an API server present the certificate of a
// kubeconfig to webhooks.
func AdmissionConfiguration(kubeconfig string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]q
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]q
`, kubeconfig)
}

// WebhookKubeconfig returns the kubeconfig with which an API server presents a certificate to the
// webhooks of one host, and to no others.
func WebhookKubeconfig(host, certificate, key string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
users:
- name: %q
  user:
    client-certificate: %q
    client-key: %q
`, host, certificate, key)
}
