package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProxyConfiguration is what machines go through to reach the outside.
type ProxyConfiguration struct {
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	// noProxy is reached directly, together with the blocks of pods and services and the control plane's endpoint.
	// +optional
	// +listType=atomic
	NoProxy []string `json:"noProxy,omitempty"`
}

// RegistryMirrorConfiguration is where machines get images from.
type RegistryMirrorConfiguration struct {
	// endpoint is an address or a host name.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// port is 443 by default.
	// +optional
	Port string `json:"port,omitempty"`
	// ociNamespaces says which registries are mirrored, and where in the mirror.
	// +optional
	// +listType=atomic
	OCINamespaces []OCINamespace `json:"ociNamespaces,omitempty"`
	// caCertContent is what the mirror's certificate is signed with, in PEM.
	// +optional
	CACertContent string `json:"caCertContent,omitempty"`
	// authenticate says that the mirror asks for the credentials in the Secret registry-credentials.
	// +optional
	Authenticate bool `json:"authenticate,omitempty"`
	// insecureSkipVerify trusts any certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// OCINamespace is the place of a registry in a mirror.
type OCINamespace struct {
	Registry string `json:"registry"`
	// +optional
	Namespace string `json:"namespace"`
}

// EtcdEncryption is what is encrypted, and how.
type EtcdEncryption struct {
	// +listType=atomic
	Providers []EtcdEncryptionProvider `json:"providers"`
	// resources are what is encrypted, such as secrets.
	// +listType=atomic
	Resources []string `json:"resources"`
}

// EtcdEncryptionProvider is what encrypts.
type EtcdEncryptionProvider struct {
	// kms is a plugin that runs on each control plane.
	// +optional
	KMS *KMS `json:"kms,omitempty"`
}

// KMS is a plugin of a key management service.
type KMS struct {
	Name string `json:"name"`
	// socketListenAddress is where the plugin listens, as unix:///path.
	SocketListenAddress string `json:"socketListenAddress"`
	// cachesize is how many keys an API server remembers, 1000 by default.
	// +optional
	CacheSize *int32 `json:"cachesize,omitempty"`
	// timeout is how long an API server waits for the plugin, 3 seconds by default.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// PackageConfiguration says what becomes of curated packages.
type PackageConfiguration struct {
	// disable keeps curated packages off the cluster.
	// +optional
	Disable bool `json:"disable,omitempty"`
	// controller is refused.
	// +optional
	Controller *PackageControllerConfiguration `json:"controller,omitempty"`
	// cronjob is refused.
	// +optional
	CronJob *PackageControllerCronJob `json:"cronjob,omitempty"`
}

// PackageControllerConfiguration was about a process that Drover does not have.
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

// PackageControllerResources are those of that process.
type PackageControllerResources struct {
	// +optional
	Limits ImageResource `json:"limits,omitempty,omitzero"`
	// +optional
	Requests ImageResource `json:"requests,omitempty,omitzero"`
}

// ImageResource is processor and memory.
type ImageResource struct {
	// +optional
	CPU string `json:"cpu,omitempty"`
	// +optional
	Memory string `json:"memory,omitempty"`
}

// PackageControllerCronJob was about credentials that Drover renews by itself.
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
