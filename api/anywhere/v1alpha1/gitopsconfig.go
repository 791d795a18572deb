package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GitOpsConfigSpec is the deprecated form of FluxConfigSpec.
type GitOpsConfigSpec struct {
	// +optional
	Flux Flux `json:"flux,omitempty,omitzero"`
}

// Flux configures Flux.
type Flux struct {
	// +optional
	Github Github `json:"github,omitempty,omitzero"`
}

// Github is a repository on GitHub.
type Github struct {
	Owner      string `json:"owner"`
	Repository string `json:"repository"`
	// fluxSystemNamespace is the namespace of Flux, flux-system by default.
	// +optional
	FluxSystemNamespace string `json:"fluxSystemNamespace,omitempty"`
	// branch is main by default.
	// +optional
	Branch string `json:"branch,omitempty"`
	// clusterConfigPath is the directory of the management cluster, clusters/ and its name by
	// default.
	// +optional
	ClusterConfigPath string `json:"clusterConfigPath,omitempty"`
	// personal means that the owner is a user, not an organization.
	// +optional
	Personal bool `json:"personal,omitempty"`
}

// GitOpsConfigStatus is empty.
type GitOpsConfigStatus struct{}

// GitOpsConfig is a Git repository of cluster specs. Deprecated: use FluxConfig.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitopsconfigs,scope=Namespaced,singular=gitopsconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type GitOpsConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GitOpsConfigSpec   `json:"spec,omitempty,omitzero"`
	Status GitOpsConfigStatus `json:"status,omitempty,omitzero"`
}

// FluxConfig converts it to a FluxConfig.
func (g *GitOpsConfig) FluxConfig() *FluxConfig {
	old := g.Spec.Flux.Github
	return &FluxConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: FluxConfigKind},
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: g.Namespace},
		Spec: FluxConfigSpec{
			SystemNamespace: old.FluxSystemNamespace, ClusterConfigPath: old.ClusterConfigPath, Branch: old.Branch,
			Github: &GithubProviderConfig{Owner: old.Owner, Repository: old.Repository, Personal: old.Personal},
		},
	}
}

// GitOpsConfigList is a list of GitOpsConfigs.
//
// +kubebuilder:object:root=true
type GitOpsConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GitOpsConfig `json:"items"`
}
