package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OIDCConfigSpec is an OIDC issuer.
type OIDCConfigSpec struct {
	// clientId is the client that tokens are issued for.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// issuerUrl starts with https://.
	// +optional
	IssuerURL string `json:"issuerUrl,omitempty"`
	// groupsClaim is the claim with the groups of a user.
	// +optional
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// groupsPrefix is the prefix of groups.
	// +optional
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// requiredClaims are the claims that tokens must have, at most one.
	// +optional
	// +listType=atomic
	RequiredClaims []OIDCConfigRequiredClaim `json:"requiredClaims,omitempty"`
	// usernameClaim is the claim with the user name.
	// +optional
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// usernamePrefix is the prefix of user names.
	// +optional
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
}

// OIDCConfigRequiredClaim is a claim that tokens must have.
type OIDCConfigRequiredClaim struct {
	// +optional
	Claim string `json:"claim,omitempty"`
	// +optional
	Value string `json:"value,omitempty"`
}

// OIDCConfigStatus is empty.
type OIDCConfigStatus struct{}

// OIDCConfig configures authentication with OIDC.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=oidcconfigs,scope=Namespaced,singular=oidcconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Issuer",type=string,JSONPath=".spec.issuerUrl"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type OIDCConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OIDCConfigSpec   `json:"spec,omitempty,omitzero"`
	Status OIDCConfigStatus `json:"status,omitempty,omitzero"`
}

// OIDCConfigList is a list of OIDCConfigs.
//
// +kubebuilder:object:root=true
type OIDCConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OIDCConfig `json:"items"`
}
