package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestJournalKeepsTheOperation(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	step := func(workers, ready metav1.ConditionStatus, reason string) *anywherev1.Cluster {
		return with(1, condition(anywherev1.WorkersReady, workers, reason, 10), condition(anywherev1.Ready, ready, reason, 10))
	}
	whole := step(yes, yes, "")
	for _, tc := range []struct {
		name    string
		reasons []string
		want    Operation
	}{
		{"an upgrade that ends with machines being removed", []string{anywherev1.RollingUpgradeInProgressReason, anywherev1.ScalingDownReason}, Upgrade},
		{"an upgrade that began with one more machine", []string{anywherev1.ScalingUpReason, anywherev1.RollingUpgradeInProgressReason, anywherev1.NodesNotReadyReason}, Upgrade},
		{"a scale-up that ends with a node that is not ready yet", []string{anywherev1.ScalingUpReason, anywherev1.NodesNotReadyReason}, Scale},
		{"something that broke", []string{anywherev1.NodesNotReadyReason}, Repair},
	} {
		j := &Journal{}
		var got []Operation
		// Twice, since a finished operation must not become part of the next one.
		for _, reasons := range [][]string{tc.reasons, {anywherev1.NodesNotReadyReason}} {
			before := whole
			for _, reason := range reasons {
				after := step(no, no, reason)
				if ended := j.Ended(before, after); len(ended) > 0 {
					t.Errorf("%s: %v ended too early", tc.name, ended)
				}
				before = after
			}
			for _, s := range j.Ended(before, whole) {
				got = append(got, s.Operation)
			}
		}
		if diff := cmp.Diff([]Operation{tc.want, tc.want, Repair, Repair}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestJournalForgetsDeletedClusters(t *testing.T) {
	j := &Journal{}
	lost := with(1, condition(anywherev1.Ready, metav1.ConditionFalse, anywherev1.ScalingUpReason, 10))
	j.Ended(with(1, condition(anywherev1.Ready, metav1.ConditionTrue, "", 9)), lost)
	if len(j.of) != 1 {
		t.Errorf("it remembers %v", j.of)
	}
	j.Forget(client.ObjectKeyFromObject(lost))
	if len(j.of) != 0 {
		t.Errorf("it still remembers %v", j.of)
	}
}
