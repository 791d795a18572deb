package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DataSecretAvailableCondition reports whether the userdata of the machine exists.
const DataSecretAvailableCondition = "DataSecretAvailable"

// DataSecretAvailableReason means that the userdata exists.
const DataSecretAvailableReason = "DataSecretAvailable"

// Format is the format of userdata.
type Format string

// CloudConfig is the only supported format.
const CloudConfig Format = "cloud-config"

// EtcdadmConfigSpec configures a machine that runs a member of etcd. The machine brings etcd and
// the kubelet that runs it, so there is nothing to install.
//
// +kubebuilder:validation:XValidation:rule="!has(self.format) || self.format == 'cloud-config'",message="format must be cloud-config"
// +kubebuilder:validation:XValidation:rule="!has(self.bottlerocketConfig)",message="bottlerocketConfig is not supported: machines run cloud-init"
// +kubebuilder:validation:XValidation:rule="!has(self.registryMirror)",message="registryMirror is not supported: configure containerd with files"
// +kubebuilder:validation:XValidation:rule="!has(self.proxy)",message="proxy is not supported: configure containerd with files"
// +kubebuilder:validation:XValidation:rule="!has(self.certBundles)",message="certBundles is not supported: use files and preEtcdadmCommands"
type EtcdadmConfigSpec struct {
	// version is the Kubernetes version of the machine, which determines the versions of etcd and
	// kubelet. By default, the machine chooses.
	// +optional
	Version string `json:"version,omitempty"`

	// users of the machine.
	// +optional
	Users []User `json:"users,omitempty"`

	// files to write before anything is started.
	// +optional
	Files []File `json:"files,omitempty"`

	// preEtcdadmCommands run before etcd is started.
	// +optional
	PreEtcdadmCommands []string `json:"preEtcdadmCommands,omitempty"`

	// postEtcdadmCommands run after etcd is started.
	// +optional
	PostEtcdadmCommands []string `json:"postEtcdadmCommands,omitempty"`

	// cipherSuites are the cipher suites of etcd for TLS 1.2, separated by commas.
	// +optional
	CipherSuites string `json:"cipherSuites,omitempty"`

	// ntp configures time servers.
	// +optional
	NTP *NTP `json:"ntp,omitempty"`

	// format of the userdata: cloud-config.
	// +optional
	Format Format `json:"format,omitempty"`

	// etcdadmBuiltin has no effect: etcd is part of the machine's image.
	// +optional
	EtcdadmBuiltin bool `json:"etcdadmBuiltin,omitempty"`

	// etcdadmInstallCommands have no effect: etcd is part of the machine's image.
	// +optional
	EtcdadmInstallCommands []string `json:"etcdadmInstallCommands,omitempty"`

	// cloudInitConfig has no effect: etcd is part of the machine's image.
	// +optional
	CloudInitConfig *CloudInitConfig `json:"cloudInitConfig,omitempty"`

	// bottlerocketConfig is rejected.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	BottlerocketConfig *runtime.RawExtension `json:"bottlerocketConfig,omitempty"`

	// registryMirror is rejected.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	RegistryMirror *runtime.RawExtension `json:"registryMirror,omitempty"`

	// proxy is rejected.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Proxy *runtime.RawExtension `json:"proxy,omitempty"`

	// certBundles is rejected.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	CertBundles *runtime.RawExtension `json:"certBundles,omitempty"`
}

// User is a user of a machine.
type User struct {
	// name of the user.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// groups are the additional groups of the user, separated by commas.
	// +optional
	Groups string `json:"groups,omitempty"`

	// shell of the user.
	// +optional
	Shell string `json:"shell,omitempty"`

	// sudo is a rule of sudo.
	// +optional
	Sudo string `json:"sudo,omitempty"`

	// sshAuthorizedKeys are the public keys that can log in.
	// +optional
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
}

// File is a file of a machine.
//
// +kubebuilder:validation:XValidation:rule="!has(self.contentFrom) || !has(self.content)",message="content and contentFrom must not both be set"
type File struct {
	// path of the file.
	// +required
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`

	// owner of the file, as user:group.
	// +optional
	Owner string `json:"owner,omitempty"`

	// permissions of the file, as an octal number.
	// +optional
	Permissions string `json:"permissions,omitempty"`

	// encoding of the content: base64, gzip or gzip+base64; empty for none.
	// +optional
	// +kubebuilder:validation:Enum="";base64;gzip;gzip+base64
	Encoding string `json:"encoding,omitempty"`

	// append adds the content to an existing file.
	// +optional
	Append bool `json:"append,omitempty"`

	// content of the file.
	// +optional
	Content string `json:"content,omitempty"`

	// contentFrom reads the content from a Secret when the machine is created.
	// +optional
	ContentFrom *FileSource `json:"contentFrom,omitempty"`
}

// FileSource is where the content of a file comes from.
type FileSource struct {
	// secret is a Secret in the same namespace.
	// +required
	Secret SecretFileSource `json:"secret"`
}

// SecretFileSource is a key of a Secret.
type SecretFileSource struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// key of the content.
	// +required
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`
}

// NTP configures time servers.
type NTP struct {
	// servers to use.
	// +optional
	Servers []string `json:"servers,omitempty"`

	// enabled reports whether to use them.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// CloudInitConfig is accepted for existing manifests.
type CloudInitConfig struct {
	// version of etcd.
	// +optional
	Version string `json:"version,omitempty"`

	// etcdReleaseURL is where etcd was downloaded from.
	// +optional
	EtcdReleaseURL string `json:"etcdReleaseURL,omitempty"`

	// installDir is where etcd was installed.
	// +optional
	InstallDir string `json:"installDir,omitempty"`
}

// EtcdadmConfigStatus is the state of the userdata.
type EtcdadmConfigStatus struct {
	// dataSecretName is the Secret with the userdata.
	// +optional
	DataSecretName *string `json:"dataSecretName,omitempty"`

	// ready reports whether the userdata exists.
	// +optional
	Ready bool `json:"ready"`

	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe the state.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EtcdadmConfig configures one machine of an EtcdadmCluster, which creates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdadmconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",description="Cluster that this belongs to"
// +kubebuilder:printcolumn:name="Ready",type="boolean",JSONPath=".status.ready",description="Whether the userdata exists"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type EtcdadmConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec EtcdadmConfigSpec `json:"spec,omitempty"`

	// status is the observed state.
	// +optional
	Status EtcdadmConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (c *EtcdadmConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *EtcdadmConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// EtcdadmConfigList is a list of EtcdadmConfigs.
//
// +kubebuilder:object:root=true
type EtcdadmConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdadmConfig `json:"items"`
}
