package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineFinalizer stays on a PacketMachine until its device is deprovisioned.
const MachineFinalizer = "packetmachine.infrastructure.cluster.x-k8s.io"

// ClaimAnnotation is set on a PacketMachine before its device is ordered; the device carries the
// same value as a tag. It identifies a device whose ID was never recorded, even after the
// PacketMachine was moved to another management plane.
const ClaimAnnotation = "infrastructure.drover.dev/claim"

// PacketMachineSpec is the desired device.
type PacketMachineSpec struct {
	// os is the slug of the operating system.
	// +required
	OS string `json:"os"`

	// billingCycle is hourly, daily, monthly or yearly.
	// +optional
	BillingCycle string `json:"billingCycle,omitempty"`

	// machineType is the slug of the plan.
	// +required
	MachineType string `json:"machineType"`

	// sshKeys can log in to the device: public keys, or IDs or labels of keys of the project. By
	// default, the API adds all keys of the project.
	// +optional
	SSHKeys []string `json:"sshKeys,omitempty"`

	// facility overrides facility and metro of the cluster. Deprecated: use metro.
	// +optional
	Facility string `json:"facility,omitempty"`

	// metro overrides facility and metro of the cluster.
	// +optional
	Metro string `json:"metro,omitempty"`

	// ipxeURL is the boot script of a device with the operating system custom_ipxe.
	// +optional
	IPXEUrl string `json:"ipxeURL,omitempty"`

	// hardwareReservationID is the ID of a reserved server, comma-separated IDs, or next-available.
	// By default, the device is provisioned on demand.
	// +optional
	HardwareReservationID string `json:"hardwareReservationID,omitempty"`

	// providerID is the ID of the device, as equinixmetal://ID. Drover sets it.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// tags of the device.
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// PacketMachine is one device.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packetmachines,scope=Namespaced,shortName=pma,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",description="Cluster that this belongs to"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.instanceStatus",description="State of the device"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether the device is active"
// +kubebuilder:printcolumn:name="InstanceID",type="string",JSONPath=".spec.providerID",description="ID of the device"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind==\"Machine\")].name",description="Machine that owns this"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec PacketMachineSpec `json:"spec,omitempty"`

	// status is the observed state.
	// +optional
	Status PacketMachineStatus `json:"status,omitempty,omitzero"`
}

// PacketMachineList is a list of PacketMachines.
//
// +kubebuilder:object:root=true
type PacketMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PacketMachine `json:"items"`
}
