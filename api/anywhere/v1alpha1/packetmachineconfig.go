package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacketMachineConfigSpec describes devices.
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
	// sshKeys are public keys, or IDs or labels of keys of the project, that can log in.
	// +optional
	// +listType=atomic
	SSHKeys []string `json:"sshKeys,omitempty"`
	// tags of the device.
	// +optional
	// +listType=atomic
	Tags []string `json:"tags,omitempty"`
	// hardwareReservationID is the ID of a reserved server, comma-separated IDs, or next-available.
	// +optional
	HardwareReservationID string `json:"hardwareReservationID,omitempty"`
	// users are created on the device.
	// +optional
	// +listType=atomic
	Users []UserConfiguration `json:"users,omitempty"`
}

// UserConfiguration is a user of machines.
type UserConfiguration struct {
	Name string `json:"name"`
	// sshAuthorizedKeys are the public keys of the user.
	// +optional
	// +listType=atomic
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
}

// PacketMachineConfigStatus is empty.
type PacketMachineConfigStatus struct{}

// PacketMachineConfig describes the machines of a group.
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

// PacketMachineConfigList is a list of PacketMachineConfigs.
//
// +kubebuilder:object:root=true
type PacketMachineConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PacketMachineConfig `json:"items"`
}
