package inspect

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestWaitingReturnsTheFirstUnmetCondition(t *testing.T) {
	tests := map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"no conditions": {nil, ""},
		"all conditions are met": {[]metav1.Condition{
			condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", ""),
			condition(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, "Available", ""),
		}, ""},
		"infrastructure comes before the control plane and the summary": {[]metav1.Condition{
			condition(clusterv1.ClusterAvailableCondition, metav1.ConditionFalse, "NotAvailable", "* InfrastructureReady: …"),
			condition(clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionFalse, "NotInitialized", "not initialized"),
			condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "PacketCluster does not exist"),
		}, "InfrastructureReady: PacketCluster does not exist"},
		"unknown is unmet, and the reason replaces an empty message": {[]metav1.Condition{
			condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", ""),
			condition(clusterv1.ClusterControlPlaneAvailableCondition, metav1.ConditionUnknown, "InspectionFailed", ""),
		}, "ControlPlaneAvailable: InspectionFailed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (&CAPICluster{Conditions: tt.conditions}).Waiting(); got != tt.want {
				t.Errorf("waiting for %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAvailabilityIsUnknownWithoutConditions(t *testing.T) {
	if got := summarizeCAPI(&clusterv1.Cluster{}).Available; got != "Unknown" {
		t.Errorf("available = %q, want Unknown", got)
	}
	c := &clusterv1.Cluster{}
	c.Status.Conditions = []metav1.Condition{condition(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, "Available", "")}
	if got := summarizeCAPI(c).Available; got != "True" {
		t.Errorf("available = %q, want True", got)
	}
}
