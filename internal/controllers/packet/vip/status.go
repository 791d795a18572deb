package vip

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// report turns what was found into the condition EndpointServed.
func (s *scope) report() {
	e := s.packetCluster.Status.Endpoint
	initialized := conditions.IsTrue(s.cluster, clusterv1.ClusterControlPlaneInitializedCondition)
	conditions.Set(s.packetCluster, served(*e, s.recollection.health[e.DeviceID], initialized, s.problem))
}

func served(e infrav1.EndpointStatus, h health, initialized bool, problem string) metav1.Condition {
	c := metav1.Condition{Type: infrav1.EndpointServed}
	switch {
	case problem != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, infrav1.APIUnavailableReason, problem
	case e.DeviceID == "":
		c.Status, c.Reason = metav1.ConditionFalse, infrav1.NoControlPlaneMachineReason
		c.Message = "No control plane machine is active"
	case h.successes > 0:
		c.Status, c.Reason = metav1.ConditionTrue, infrav1.EndpointHealthyReason
		c.Message = fmt.Sprintf("Machine %q holds the address", e.Machine)
	case h.failures < patience || !initialized:
		c.Status, c.Reason = metav1.ConditionUnknown, infrav1.EndpointAssignedReason
		c.Message = fmt.Sprintf("Machine %q holds the address but has not answered yet", e.Machine)
	default:
		c.Status, c.Reason = metav1.ConditionFalse, infrav1.EndpointUnhealthyReason
		c.Message = fmt.Sprintf("Machine %q holds the address but does not answer, and neither does any other control plane machine", e.Machine)
	}
	return c
}
