package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InstanceStatus is the state of a device as the Packet API tells it.
type InstanceStatus string

// The states of a device.
const (
	InstanceQueued         InstanceStatus = "queued"
	InstanceProvisioning   InstanceStatus = "provisioning"
	InstanceActive         InstanceStatus = "active"
	InstanceInactive       InstanceStatus = "inactive"
	InstancePoweringOn     InstanceStatus = "powering_on"
	InstancePoweringOff    InstanceStatus = "powering_off"
	InstanceReinstalling   InstanceStatus = "reinstalling"
	InstanceDeprovisioning InstanceStatus = "deprovisioning"
	InstanceDeleted        InstanceStatus = "deleted"
	InstanceFailed         InstanceStatus = "failed"
)

// PacketMachineStatus is what is known of a device.
type PacketMachineStatus struct {
	// ready says that the device is up. Readers of the v1beta1 contract go by it.
	// +optional
	Ready bool `json:"ready"`

	// initialization is what readers of the v1beta2 contract go by.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`

	// addresses are those of the device, and the elastic address if it holds that.
	// +optional
	// +listType=atomic
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// instanceStatus is the state of the device.
	// +optional
	InstanceStatus *InstanceStatus `json:"instanceStatus,omitempty"`

	// failureDomain is the metro that the device is in, if the cluster has failure domains.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`

	// provisioning tells of the attempts to get a device.
	// +optional
	Provisioning *ProvisioningStatus `json:"provisioning,omitempty"`

	// failureReason is set when the device is lost or can't be had, and only then: never by an error that may pass. It is for scripts
	// of former days, the condition InstanceReady says the same.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// conditions are those of conditions.go.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisioningStatus tells of the attempts to get a device.
type ProvisioningStatus struct {
	// orderedAt is when a device was last ordered. It is written before the order is sent.
	// +optional
	OrderedAt *metav1.Time `json:"orderedAt,omitempty"`

	// failures counts the devices that failed before they were ever up.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// GetConditions returns the conditions.
func (m *PacketMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions.
func (m *PacketMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}
