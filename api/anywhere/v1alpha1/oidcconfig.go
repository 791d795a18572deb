package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OIDCConfigSpec is who says who somebody is.
type OIDCConfigSpec struct {
	// clientId is what tokens are for.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// issuerUrl begins with https://.
	// +optional
	IssuerURL string `json:"issuerUrl,omitempty"`
	// groupsClaim is where tokens name the groups of a user.
	// +optional
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// groupsPrefix is put before them.
	// +optional
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// requiredClaims is what tokens must say, one claim at most.
	// +optional
	// +listType=atomic
	RequiredClaims []OIDCConfigRequiredClaim `json:"requiredClaims,omitempty"`
	// usernameClaim is where tokens name the user.
	// +optional
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// usernamePrefix is put before it.
	// +optional
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
}

// OIDCConfigRequiredClaim is what a token must say.
type OIDCConfigRequiredClaim struct {
	// +optional
	Claim string `json:"claim,omitempty"`
	// +optional
	Value string `json:"value,omitempty"`
}

// OIDCConfigStatus has nothing to tell.
type OIDCConfigStatus struct{}

// OIDCConfig lets users in who log in elsewhere.
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

// OIDCConfigList is a list of them.
//
// +kubebuilder:object:root=true
type OIDCConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OIDCConfig `json:"items"`
}
