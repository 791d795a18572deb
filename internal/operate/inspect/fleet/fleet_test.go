package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestWaitingNamesWhatHoldsUpTheRest(t *testing.T) {
	tests := map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nothing is known yet": {nil, ""},
		"all is well": {[]metav1.Condition{
			condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", ""),
			condition(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, "Available", ""),
		}, ""},
		"infrastructure comes before the control plane and the summary": {[]metav1.Condition{
			condition(clusterv1.ClusterAvailableCondition, metav1.ConditionFalse, "NotAvailable", "* InfrastructureReady: …"),
			condition(clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionFalse, "NotInitialized", "not initialized"),
			condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "PacketCluster does not exist"),
		}, "InfrastructureReady: PacketCluster does not exist"},
		"unknown is unmet, and a reason serves for want of a message": {[]metav1.Condition{
			condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", ""),
			condition(clusterv1.ClusterControlPlaneAvailableCondition, metav1.ConditionUnknown, "InspectionFailed", ""),
		}, "ControlPlaneAvailable: InspectionFailed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (Cluster{Conditions: tt.conditions}).Waiting(); got != tt.want {
				t.Errorf("waiting for %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAClusterWithoutConditionsIsNotKnownToBeAvailable(t *testing.T) {
	if got := summarize(&clusterv1.Cluster{}).Available; got != "Unknown" {
		t.Errorf("available = %q, want Unknown", got)
	}
	c := &clusterv1.Cluster{}
	c.Status.Conditions = []metav1.Condition{condition(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, "Available", "")}
	if got := summarize(c).Available; got != "True" {
		t.Errorf("available = %q, want True", got)
	}
}
