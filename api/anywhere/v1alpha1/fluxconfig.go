package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FluxConfigSpec is the Git repository that clusters are described in. It has github or git, and can't be changed.
type FluxConfigSpec struct {
	// systemNamespace is where Flux runs, flux-system by default.
	// +optional
	SystemNamespace string `json:"systemNamespace,omitempty"`
	// clusterConfigPath is the folder of the management cluster, clusters/ and its name by default.
	// +optional
	ClusterConfigPath string `json:"clusterConfigPath,omitempty"`
	// branch is main by default.
	// +optional
	Branch string `json:"branch,omitempty"`
	// +optional
	Github *GithubProviderConfig `json:"github,omitempty"`
	// +optional
	Git *GitProviderConfig `json:"git,omitempty"`
}

// GithubProviderConfig is a repository at GitHub.
type GithubProviderConfig struct {
	Owner      string `json:"owner"`
	Repository string `json:"repository"`
	// personal says that the owner is a user, and no organisation.
	// +optional
	Personal bool `json:"personal,omitempty"`
}

// GitProviderConfig is a repository anywhere.
type GitProviderConfig struct {
	// repositoryUrl begins with ssh://.
	RepositoryURL string `json:"repositoryUrl"`
	// sshKeyAlgorithm is rsa, ecdsa or ed25519; ecdsa by default.
	// +optional
	SSHKeyAlgorithm string `json:"sshKeyAlgorithm,omitempty"`
}

// FluxConfigStatus has nothing to tell.
type FluxConfigStatus struct{}

// FluxConfig is a Git repository that clusters are described in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=fluxconfigs,scope=Namespaced,singular=fluxconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Branch",type=string,JSONPath=".spec.branch"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type FluxConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FluxConfigSpec   `json:"spec,omitempty,omitzero"`
	Status FluxConfigStatus `json:"status,omitempty,omitzero"`
}

// FluxConfigList is a list of them.
//
// +kubebuilder:object:root=true
type FluxConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FluxConfig `json:"items"`
}
