package capi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestOnlyReadinessChangesTriggerReconciles(t *testing.T) {
	pod := func(phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	for _, c := range []struct {
		before, after *corev1.Pod
		want          bool
	}{
		{&corev1.Pod{}, pod(corev1.PodRunning, corev1.ConditionTrue), true},
		{pod(corev1.PodRunning, corev1.ConditionTrue), pod(corev1.PodRunning, corev1.ConditionFalse), true},
		{pod(corev1.PodPending, corev1.ConditionFalse), pod(corev1.PodRunning, corev1.ConditionFalse), false},
		{pod(corev1.PodRunning, corev1.ConditionTrue), pod(corev1.PodRunning, corev1.ConditionTrue), false},
	} {
		if got := readiness().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("from %v to %v: %v", c.before.Status, c.after.Status, got)
		}
	}
}
