package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PacketClusterStatus is the observed infrastructure of a cluster.
type PacketClusterStatus struct {
	// ready reports whether machines can be created, for the v1beta1 contract.
	// +optional
	Ready bool `json:"ready"`

	// initialization is for the v1beta2 contract.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`

	// failureDomains are the metros of the spec, in the format of Cluster API.
	// +optional
	// +listType=map
	// +listMapKey=name
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// endpoint describes the elastic address of the control plane endpoint.
	// +optional
	Endpoint *EndpointStatus `json:"endpoint,omitempty"`

	// conditions describe the state; Ready summarizes the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Initialization records steps that are never undone.
type Initialization struct {
	// provisioned reports whether the infrastructure has been complete.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// EndpointStatus describes an elastic address.
type EndpointStatus struct {
	// address is the elastic address.
	// +optional
	Address string `json:"address,omitempty"`

	// reservationID is the ID of the address in the Packet API.
	// +optional
	ReservationID string `json:"reservationID,omitempty"`

	// owned reports whether Drover reserved the address for this cluster, so that the reclaim
	// policy applies.
	// +optional
	Owned bool `json:"owned,omitempty"`

	// machine is the PacketMachine that holds the address, if Drover moves it (vipManager CPEM).
	// +optional
	Machine string `json:"machine,omitempty"`

	// deviceID is the ID of that machine's device.
	// +optional
	DeviceID string `json:"deviceID,omitempty"`

	// movedAt is when the address was assigned to that machine.
	// +optional
	MovedAt *metav1.Time `json:"movedAt,omitempty"`
}

// GetConditions returns the conditions.
func (c *PacketCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *PacketCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}
