package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GitOpsConfigSpec is the older form of FluxConfigSpec.
type GitOpsConfigSpec struct {
	// +optional
	Flux Flux `json:"flux,omitempty,omitzero"`
}

// Flux is the only choice.
type Flux struct {
	// +optional
	Github Github `json:"github,omitempty,omitzero"`
}

// Github is a repository at GitHub.
type Github struct {
	Owner      string `json:"owner"`
	Repository string `json:"repository"`
	// fluxSystemNamespace is where Flux runs, flux-system by default.
	// +optional
	FluxSystemNamespace string `json:"fluxSystemNamespace,omitempty"`
	// branch is main by default.
	// +optional
	Branch string `json:"branch,omitempty"`
	// clusterConfigPath is the folder of the management cluster, clusters/ and its name by default.
	// +optional
	ClusterConfigPath string `json:"clusterConfigPath,omitempty"`
	// personal says that the owner is a user, and no organisation.
	// +optional
	Personal bool `json:"personal,omitempty"`
}

// GitOpsConfigStatus has nothing to tell.
type GitOpsConfigStatus struct{}

// GitOpsConfig is a Git repository that clusters are described in. Deprecated: use FluxConfig.
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

// FluxConfig returns the same in the newer form.
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

// GitOpsConfigList is a list of them.
//
// +kubebuilder:object:root=true
type GitOpsConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GitOpsConfig `json:"items"`
}
