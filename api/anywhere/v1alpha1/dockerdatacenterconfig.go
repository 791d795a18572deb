package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DockerDatacenterConfigSpec is empty.
type DockerDatacenterConfigSpec struct{}

// DockerDatacenterConfigStatus is empty.
type DockerDatacenterConfigStatus struct{}

// DockerDatacenterConfig selects machines on the host of the management plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=dockerdatacenterconfigs,scope=Namespaced,singular=dockerdatacenterconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type DockerDatacenterConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DockerDatacenterConfigSpec   `json:"spec,omitempty,omitzero"`
	Status DockerDatacenterConfigStatus `json:"status,omitempty,omitzero"`
}

// DockerDatacenterConfigList is a list of DockerDatacenterConfigs.
//
// +kubebuilder:object:root=true
type DockerDatacenterConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DockerDatacenterConfig `json:"items"`
}
