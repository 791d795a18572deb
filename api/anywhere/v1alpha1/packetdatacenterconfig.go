package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacketDatacenterConfigSpec is the location of machines. Everything except credentialsRef is
// immutable.
type PacketDatacenterConfigSpec struct {
	// projectID is the project of devices and addresses.
	// +optional
	ProjectID string `json:"projectID,omitempty"`
	// metro is the location of devices, such as da.
	// +optional
	Metro string `json:"metro,omitempty"`
	// facility is a part of a metro. Deprecated: use metro.
	// +optional
	Facility string `json:"facility,omitempty"`
	// credentialsRef references the Secret with the credentials of the API.
	// +optional
	CredentialsRef *CredentialsRef `json:"credentialsRef,omitempty"`
}

// CredentialsRef references a Secret in SystemNamespace.
type CredentialsRef struct {
	// name is packet-credentials by default.
	// +optional
	Name string `json:"name,omitempty"`
}

// PacketDatacenterConfigStatus is empty.
type PacketDatacenterConfigStatus struct{}

// PacketDatacenterConfig selects machines of a Packet API.
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

// CredentialsName returns the name of the Secret with the credentials of the API.
func (d *PacketDatacenterConfig) CredentialsName() string {
	if d.Spec.CredentialsRef == nil || d.Spec.CredentialsRef.Name == "" {
		return DefaultPacketCredentials
	}
	return d.Spec.CredentialsRef.Name
}

// PacketDatacenterConfigList is a list of PacketDatacenterConfigs.
//
// +kubebuilder:object:root=true
type PacketDatacenterConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PacketDatacenterConfig `json:"items"`
}
