package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacketMachineConfigSpec is a kind of device.
type PacketMachineConfigSpec struct {
	// machineType is the slug of the plan.
	// +optional
	MachineType string `json:"machineType,omitempty"`
	// os is the slug of the operating system.
	// +optional
	OS string `json:"os,omitempty"`
	// billingCycle is hourly, daily, monthly or yearly; hourly by default.
	// +optional
	BillingCycle string `json:"billingCycle,omitempty"`
	// sshKeys may log in to the device: public keys, or ids or labels of keys of the project.
	// +optional
	// +listType=atomic
	SSHKeys []string `json:"sshKeys,omitempty"`
	// tags are put on the device.
	// +optional
	// +listType=atomic
	Tags []string `json:"tags,omitempty"`
	// hardwareReservationID is the id of a reserved server, several of them separated by commas, or next-available.
	// +optional
	HardwareReservationID string `json:"hardwareReservationID,omitempty"`
	// users are made on the device.
	// +optional
	// +listType=atomic
	Users []UserConfiguration `json:"users,omitempty"`
}

// UserConfiguration is a user of machines.
type UserConfiguration struct {
	Name string `json:"name"`
	// sshAuthorizedKeys are public keys that let the user in.
	// +optional
	// +listType=atomic
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
}

// PacketMachineConfigStatus has nothing to tell.
type PacketMachineConfigStatus struct{}

// PacketMachineConfig is what the machines of a group are made of.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packetmachineconfigs,scope=Namespaced,singular=packetmachineconfig
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.machineType"
// +kubebuilder:printcolumn:name="OS",type=string,JSONPath=".spec.os"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type PacketMachineConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PacketMachineConfigSpec   `json:"spec,omitempty,omitzero"`
	Status PacketMachineConfigStatus `json:"status,omitempty,omitzero"`
}

// PacketMachineConfigList is a list of them.
//
// +kubebuilder:object:root=true
type PacketMachineConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PacketMachineConfig `json:"items"`
}
