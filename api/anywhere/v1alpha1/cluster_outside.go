package v1alpha1

import (
	"net"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProxyConfiguration is the proxy of machines.
type ProxyConfiguration struct {
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	// noProxy lists destinations that bypass the proxy, in addition to the Pod and service blocks
	// and the endpoint.
	// +optional
	// +listType=atomic
	NoProxy []string `json:"noProxy,omitempty"`
}

// RegistryMirrorConfiguration is the registry mirror of machines.
type RegistryMirrorConfiguration struct {
	// endpoint is an address or a host name.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// port is 443 by default.
	// +optional
	Port string `json:"port,omitempty"`
	// ociNamespaces lists the mirrored registries and their paths in the mirror.
	// +optional
	// +listType=atomic
	OCINamespaces []OCINamespace `json:"ociNamespaces,omitempty"`
	// caCertContent is the certificate authority of the mirror, in PEM.
	// +optional
	CACertContent string `json:"caCertContent,omitempty"`
	// authenticate uses the credentials in the Secret registry-credentials, which an administrator
	// binds to the endpoint and to the namespace of the cluster.
	// +optional
	Authenticate bool `json:"authenticate,omitempty"`
	// insecureSkipVerify disables the verification of the certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Address returns the host of the mirror as it stands in a URL, where IPv6 addresses have brackets,
// with the port unless that is 443.
func (m *RegistryMirrorConfiguration) Address() string {
	if m.Port == "" || m.Port == "443" {
		return strings.TrimSuffix(net.JoinHostPort(m.Endpoint, ""), ":")
	}
	return net.JoinHostPort(m.Endpoint, m.Port)
}

// OCINamespace is the path of a registry in a mirror.
type OCINamespace struct {
	Registry string `json:"registry"`
	// +optional
	Namespace string `json:"namespace"`
}

// EtcdEncryption configures the encryption of resources.
type EtcdEncryption struct {
	// +listType=atomic
	Providers []EtcdEncryptionProvider `json:"providers"`
	// resources are the encrypted resources, such as secrets.
	// +listType=atomic
	Resources []string `json:"resources"`
}

// EtcdEncryptionProvider is an encryption provider.
type EtcdEncryptionProvider struct {
	// kms is a plugin that runs on each control plane machine.
	// +optional
	KMS *KMS `json:"kms,omitempty"`
	// secretbox encrypts Secrets with a key that Drover generates, distributes and rotates.
	// Management clusters have it without asking.
	// +optional
	Secretbox *Secretbox `json:"secretbox,omitempty"`
}

// Secretbox encrypts with a key of the cluster. It has no settings.
type Secretbox struct{}

// KMS is a plugin of a key management service.
type KMS struct {
	Name string `json:"name"`
	// socketListenAddress is the socket of the plugin, as unix:///path.
	SocketListenAddress string `json:"socketListenAddress"`
	// cachesize is the number of cached keys, 1000 by default.
	// +optional
	CacheSize *int32 `json:"cachesize,omitempty"`
	// timeout of requests to the plugin, 3 seconds by default.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// PackageConfiguration configures curated packages.
type PackageConfiguration struct {
	// disable disables curated packages.
	// +optional
	Disable bool `json:"disable,omitempty"`
	// controller is not supported.
	// +optional
	Controller *PackageControllerConfiguration `json:"controller,omitempty"`
	// cronjob is not supported.
	// +optional
	CronJob *PackageControllerCronJob `json:"cronjob,omitempty"`
}

// PackageControllerConfiguration configures a component that Drover does not have.
type PackageControllerConfiguration struct {
	// +optional
	Repository string `json:"repository,omitempty"`
	// +optional
	Tag string `json:"tag,omitempty"`
	// +optional
	Digest string `json:"digest,omitempty"`
	// +optional
	DisableWebhooks bool `json:"disableWebhooks,omitempty"`
	// +optional
	// +listType=atomic
	Env []string `json:"env,omitempty"`
	// +optional
	Resources PackageControllerResources `json:"resources,omitempty,omitzero"`
}

// PackageControllerResources are the resources of that component.
type PackageControllerResources struct {
	// +optional
	Limits ImageResource `json:"limits,omitempty,omitzero"`
	// +optional
	Requests ImageResource `json:"requests,omitempty,omitzero"`
}

// ImageResource is CPU and memory.
type ImageResource struct {
	// +optional
	CPU string `json:"cpu,omitempty"`
	// +optional
	Memory string `json:"memory,omitempty"`
}

// PackageControllerCronJob configures a component that Drover does not have.
type PackageControllerCronJob struct {
	// +optional
	Repository string `json:"repository,omitempty"`
	// +optional
	Tag string `json:"tag,omitempty"`
	// +optional
	Digest string `json:"digest,omitempty"`
	// +optional
	Disable bool `json:"disable,omitempty"`
}
