package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/metal/client"
)

// report computes the status from the facts, and the endpoint from the address.
func (s *scope) report() {
	c := s.packetCluster
	if s.address != nil {
		c.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: s.address.Address, Port: infrav1.APIServerPort}
		c.Status.Endpoint = endpoint(c.Status.Endpoint, s.address, s.owned)
	}
	if condition := networkCondition(s.facts); condition != nil {
		conditions.Set(c, *condition)
	}
	conditions.Set(c, readyCondition(c))
	c.Status.FailureDomains = failureDomains(c.Spec.FailureDomains)
	if s.Deleting() {
		c.Status.Ready = false
		return
	}
	switch {
	case s.address != nil || s.external:
		c.Status.Ready = true
		c.Status.Initialization.Provisioned = ptr.To(true)
	case s.wait != nil && !failure.Inconclusive(s.wait):
		c.Status.Ready = false
	}
}

// networkCondition returns the condition NetworkInfrastructureReady, or nil if nothing has changed.
// If the API does not respond, the state of an address that existed before is unknown.
func networkCondition(f facts) *metav1.Condition {
	c := &metav1.Condition{Type: infrav1.NetworkInfrastructureReady}
	switch {
	case f.wait != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, f.wait.Reason, f.wait.Message
		if f.provisioned && failure.Inconclusive(f.wait) {
			c.Status = metav1.ConditionUnknown
		}
	case f.external:
		c.Status, c.Reason = metav1.ConditionTrue, infrav1.ExternalEndpointReason
		c.Message = "The endpoint is spec.controlPlaneEndpoint, which Drover does not manage"
	case f.address != nil:
		c.Status, c.Reason = metav1.ConditionTrue, infrav1.AddressReservedReason
	default:
		return nil
	}
	return c
}

// readyCondition mirrors NetworkInfrastructureReady.
func readyCondition(c *infrav1.PacketCluster) metav1.Condition {
	return *conditions.NewMirrorCondition(c, infrav1.NetworkInfrastructureReady, conditions.TargetConditionType(clusterv1.ReadyCondition))
}

// endpoint keeps what package vip has recorded of the same address.
func endpoint(old *infrav1.EndpointStatus, address *client.IPReservation, owned bool) *infrav1.EndpointStatus {
	e := &infrav1.EndpointStatus{}
	if old != nil && old.Address == address.Address {
		*e = *old
	}
	e.Address, e.ReservationID, e.Owned = address.Address, address.ID, owned
	return e
}

func failureDomains(spec []infrav1.PacketFailureDomain) []clusterv1.FailureDomain {
	var out []clusterv1.FailureDomain
	for _, d := range spec {
		out = append(out, clusterv1.FailureDomain{Name: d.Metro, ControlPlane: ptr.To(ptr.Deref(d.ControlPlane, false))})
	}
	return out
}
