package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacketDatacenterConfigSpec is where the machines of a cluster come from. None of it can be changed.
type PacketDatacenterConfigSpec struct {
	// projectID is the project that devices and addresses belong to.
	// +optional
	ProjectID string `json:"projectID,omitempty"`
	// metro is where devices are made, such as da.
	// +optional
	Metro string `json:"metro,omitempty"`
	// facility is a part of a metro. Deprecated: use metro.
	// +optional
	Facility string `json:"facility,omitempty"`
	// credentialsRef names the Secret with the credentials of the API.
	// +optional
	CredentialsRef *CredentialsRef `json:"credentialsRef,omitempty"`
}

// CredentialsRef names a Secret in SystemNamespace.
type CredentialsRef struct {
	// name is packet-credentials by default.
	// +optional
	Name string `json:"name,omitempty"`
}

// PacketDatacenterConfigStatus has nothing to tell.
type PacketDatacenterConfigStatus struct{}

// PacketDatacenterConfig stands for machines behind a Packet HTTP API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packetdatacenterconfigs,scope=Namespaced,singular=packetdatacenterconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=".spec.projectID"
// +kubebuilder:printcolumn:name="Metro",type=string,JSONPath=".spec.metro"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type PacketDatacenterConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PacketDatacenterConfigSpec   `json:"spec,omitempty,omitzero"`
	Status PacketDatacenterConfigStatus `json:"status,omitempty,omitzero"`
}

// CredentialsName is the name of the Secret with the credentials of the API.
func (d *PacketDatacenterConfig) CredentialsName() string {
	if d.Spec.CredentialsRef == nil || d.Spec.CredentialsRef.Name == "" {
		return DefaultPacketCredentials
	}
	return d.Spec.CredentialsRef.Name
}

// PacketDatacenterConfigList is a list of them.
//
// +kubebuilder:object:root=true
type PacketDatacenterConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PacketDatacenterConfig `json:"items"`
}
