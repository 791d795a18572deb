package vip

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// facts are what the condition is computed from.
type facts struct {
	endpoint infrav1.EndpointStatus
	// health is that of the machine that holds the address.
	health health
	// initialized means that the control plane has answered before.
	initialized bool
	// wait is why the steps ended early, or nil.
	wait *reconcile.Wait
}

// report sets the condition EndpointServed.
func (s *scope) report(wait *reconcile.Wait) {
	e := s.packetCluster.Status.Endpoint
	conditions.Set(s.packetCluster, served(facts{
		endpoint: *e, health: s.recollection.health[e.DeviceID], wait: wait,
		initialized: conditions.IsTrue(s.cluster, clusterv1.ClusterControlPlaneInitializedCondition),
	}))
}

// served returns the condition EndpointServed.
func served(f facts) metav1.Condition {
	c := metav1.Condition{Type: infrav1.EndpointServed}
	switch e := f.endpoint; {
	case f.wait != nil && f.wait.Reason == infrav1.AddressInUseReason:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, f.wait.Reason, f.wait.Message
	case f.wait != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, infrav1.APIUnavailableReason, f.wait.Message
	case e.DeviceID == "":
		c.Status, c.Reason = metav1.ConditionFalse, infrav1.NoControlPlaneMachineReason
		c.Message = "No control plane machine is active"
	case f.health.successes > 0:
		c.Status, c.Reason = metav1.ConditionTrue, infrav1.EndpointHealthyReason
		c.Message = fmt.Sprintf("Machine %q holds the address", e.Machine)
	case f.health.failures < patience || !f.initialized:
		c.Status, c.Reason = metav1.ConditionUnknown, infrav1.EndpointAssignedReason
		c.Message = fmt.Sprintf("Machine %q holds the address but has not answered yet", e.Machine)
	default:
		c.Status, c.Reason = metav1.ConditionFalse, infrav1.EndpointUnhealthyReason
		c.Message = fmt.Sprintf("Machine %q holds the address but does not answer, and neither does any other control plane machine", e.Machine)
	}
	return c
}
