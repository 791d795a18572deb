package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PacketClusterStatus is what is known of a cluster's infrastructure.
type PacketClusterStatus struct {
	// ready says that machines can be made. Readers of the v1beta1 contract go by it.
	// +optional
	Ready bool `json:"ready"`

	// initialization is what readers of the v1beta2 contract go by.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`

	// failureDomains are the metros of the spec, in the form that Cluster API reads.
	// +optional
	// +listType=map
	// +listMapKey=name
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// endpoint tells of the elastic address behind the control plane endpoint.
	// +optional
	Endpoint *EndpointStatus `json:"endpoint,omitempty"`

	// conditions are those of conditions.go.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Initialization tells what was done once and is never undone.
type Initialization struct {
	// provisioned says that the infrastructure was complete at least once.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// EndpointStatus tells of an elastic address.
type EndpointStatus struct {
	// address is the elastic address.
	// +optional
	Address string `json:"address,omitempty"`

	// reservationID is the id of the address in the Packet API.
	// +optional
	ReservationID string `json:"reservationID,omitempty"`

	// owned says that Drover made the reservation for this cluster, so that the reclaim policy applies.
	// +optional
	Owned bool `json:"owned,omitempty"`

	// machine is the PacketMachine that holds the address, if Drover moves it (vipManager CPEM).
	// +optional
	Machine string `json:"machine,omitempty"`

	// deviceID is the id of that machine's device.
	// +optional
	DeviceID string `json:"deviceID,omitempty"`

	// movedAt is when the address came to that machine.
	// +optional
	MovedAt *metav1.Time `json:"movedAt,omitempty"`
}

// GetConditions returns the conditions.
func (c *PacketCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *PacketCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}
