package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InstanceStatus is the state of a device in the Packet API.
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

// PacketMachineStatus is the observed state of a device.
type PacketMachineStatus struct {
	// ready reports whether the device is active, for the v1beta1 contract.
	// +optional
	Ready bool `json:"ready"`

	// initialization is for the v1beta2 contract.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`

	// addresses are those of the device, including the elastic address if it holds that.
	// +optional
	// +listType=atomic
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// instanceStatus is the state of the device.
	// +optional
	InstanceStatus *InstanceStatus `json:"instanceStatus,omitempty"`

	// failureDomain is the metro of the device, if the cluster has failure domains.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`

	// provisioning describes the attempts to provision a device.
	// +optional
	Provisioning *ProvisioningStatus `json:"provisioning,omitempty"`

	// failureReason is set only if the device is lost or can't be provisioned, never for temporary
	// errors. It is kept for existing scripts; the condition InstanceReady reports the same.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// conditions describe the state; Ready summarizes the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisioningStatus describes the attempts to provision a device.
type ProvisioningStatus struct {
	// orderedAt is when a device was last ordered. It is written before the order is sent.
	// +optional
	OrderedAt *metav1.Time `json:"orderedAt,omitempty"`

	// failures counts the devices that failed before they were active.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// GetConditions returns the conditions.
func (m *PacketMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions.
func (m *PacketMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}
