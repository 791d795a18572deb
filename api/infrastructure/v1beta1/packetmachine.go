package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineFinalizer stays on a PacketMachine until its device is gone.
const MachineFinalizer = "packetmachine.infrastructure.cluster.x-k8s.io"

// ClaimAnnotation is set on a PacketMachine before its device is ordered; the device carries the same value as a tag. It is how a device
// whose id was never recorded is found again, also after the PacketMachine was moved to another management plane.
const ClaimAnnotation = "infrastructure.drover.dev/claim"

// PacketMachineSpec is the device that a user wants.
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

	// sshKeys may log in to the device: public keys, or ids or labels of keys of the project. Without any, the API's default
	// applies, which is all keys of the project.
	// +optional
	SSHKeys []string `json:"sshKeys,omitempty"`

	// facility, if set, takes the place of facility and metro of the cluster. Deprecated: use metro.
	// +optional
	Facility string `json:"facility,omitempty"`

	// metro, if set, takes the place of facility and metro of the cluster.
	// +optional
	Metro string `json:"metro,omitempty"`

	// ipxeURL is the script that a device with the operating system custom_ipxe boots.
	// +optional
	IPXEUrl string `json:"ipxeURL,omitempty"`

	// hardwareReservationID is the id of a reserved server, several of them separated by commas, or next-available. Without it, the
	// device is made on demand.
	// +optional
	HardwareReservationID string `json:"hardwareReservationID,omitempty"`

	// providerID is the id of the device, as equinixmetal://ID. Drover sets it.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// tags are put on the device.
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
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether the device is up"
// +kubebuilder:printcolumn:name="InstanceID",type="string",JSONPath=".spec.providerID",description="Id of the device"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind==\"Machine\")].name",description="Machine that owns this"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec PacketMachineSpec `json:"spec,omitempty"`

	// status is what is there.
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
