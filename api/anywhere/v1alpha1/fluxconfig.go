package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FluxConfigSpec is the Git repository of cluster specs, with either github or git. It is
// immutable.
type FluxConfigSpec struct {
	// systemNamespace is the namespace of Flux, flux-system by default.
	// +optional
	SystemNamespace string `json:"systemNamespace,omitempty"`
	// clusterConfigPath is the directory of the management cluster, clusters/ and its name by
	// default.
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

// GithubProviderConfig is a repository on GitHub.
type GithubProviderConfig struct {
	Owner      string `json:"owner"`
	Repository string `json:"repository"`
	// personal means that the owner is a user, not an organization.
	// +optional
	Personal bool `json:"personal,omitempty"`
}

// GitProviderConfig is a repository on any Git server.
type GitProviderConfig struct {
	// repositoryUrl starts with ssh:// or https://.
	RepositoryURL string `json:"repositoryUrl"`
	// sshKeyAlgorithm is rsa, ecdsa or ed25519; ecdsa by default.
	// +optional
	SSHKeyAlgorithm string `json:"sshKeyAlgorithm,omitempty"`
}

// Conditions of a FluxConfig are Ready and:
const (
	// RepositoryConnected means that an administrator has opened the repository to the namespace.
	RepositoryConnected = "RepositoryConnected"
	// RepositoryFetched means that Flux has fetched the branch.
	RepositoryFetched = "RepositoryFetched"
	// ClustersApplied means that Flux has applied the newest commit to all clusters of the namespace.
	ClustersApplied = "ClustersApplied"
)

// Reasons of the conditions of a FluxConfig.
const (
	// RepositoryConnectedReason: the credentials are bound to the repository and the namespace.
	RepositoryConnectedReason = "Connected"
	// RepositoryNotConnectedReason: no credentials are bound to the repository and the namespace.
	RepositoryNotConnectedReason = "NotConnected"
	// RepositoryFetchingReason: Flux has not fetched the branch yet.
	RepositoryFetchingReason = "Fetching"
	// RepositoryFetchedReason: Flux has fetched the branch.
	RepositoryFetchedReason = "Fetched"
	// RepositoryFetchFailedReason: Flux can't fetch the branch.
	RepositoryFetchFailedReason = "FetchFailed"
	// ClustersAppliedReason: all clusters have the newest commit that concerns them.
	ClustersAppliedReason = "Applied"
	// ClustersApplyingReason: Flux is applying a commit.
	ClustersApplyingReason = "Applying"
	// ClustersRejectedReason: Flux can't apply the files of a cluster.
	ClustersRejectedReason = "Rejected"
	// RemovalUnconfirmedReason: the files of a cluster in use were removed, and its deletion waits for
	// confirmation.
	RemovalUnconfirmedReason = "RemovalUnconfirmed"
)

// FluxConfigStatus is what Flux does with the repository.
type FluxConfigStatus struct {
	// revision is the newest commit that Flux has fetched.
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// FluxConfig is a Git repository of cluster specs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=fluxconfigs,scope=Namespaced,singular=fluxconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Branch",type=string,JSONPath=".spec.branch"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=".status.revision",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type FluxConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FluxConfigSpec   `json:"spec,omitempty,omitzero"`
	Status FluxConfigStatus `json:"status,omitempty,omitzero"`
}

// FluxConfigList is a list of FluxConfigs.
//
// +kubebuilder:object:root=true
type FluxConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FluxConfig `json:"items"`
}
