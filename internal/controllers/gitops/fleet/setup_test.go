package fleet

import (
	"testing"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/removal"
)

func TestEventsOfRepositoriesThatMatter(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*sourcev1.GitRepository)
		want   bool
	}{
		"a label":           {func(r *sourcev1.GitRepository) { r.Labels = map[string]string{"a": "b"} }, false},
		"a spec":            {func(r *sourcev1.GitRepository) { r.Generation++ }, true},
		"an artifact":       {func(r *sourcev1.GitRepository) { r.Status.Artifact = &fluxmeta.Artifact{Revision: "main@sha1:1"} }, true},
		"a handled request": {func(r *sourcev1.GitRepository) { r.Status.LastHandledReconcileAt = "2026-01-02T03:04:05Z" }, true},
		"a successful fetch": {func(r *sourcev1.GitRepository) {
			r.Status.Conditions = []metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue}}
		}, true},
	} {
		is := &sourcev1.GitRepository{}
		tt.change(is)
		if got := fetched(event.UpdateEvent{ObjectOld: &sourcev1.GitRepository{}, ObjectNew: is}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestEventsOfClustersThatMatter(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*anywherev1.Cluster)
		want   bool
	}{
		"another annotation": {func(c *anywherev1.Cluster) { c.Annotations = map[string]string{"a": "b"} }, false},
		// It is withdrawn, even if nobody uses the cluster.
		"a confirmation": {func(c *anywherev1.Cluster) {
			c.Annotations = map[string]string{anywherev1.GitRemovalAnnotation: removal.Confirmed}
		}, true},
		"a first use": {func(c *anywherev1.Cluster) {
			c.Status.Conditions = []metav1.Condition{{Type: anywherev1.Ready, Status: metav1.ConditionTrue}}
		}, true},
		"a deletion": {func(c *anywherev1.Cluster) { now := metav1.Now(); c.DeletionTimestamp = &now }, true},
	} {
		is := &anywherev1.Cluster{}
		tt.change(is)
		if got := usageChanged(event.UpdateEvent{ObjectOld: &anywherev1.Cluster{}, ObjectNew: is}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestEventsOfGitChangesThatMatter(t *testing.T) {
	with := func(action droverv1.GitAction, condition, reason string, status metav1.ConditionStatus) *droverv1.GitChange {
		c := &droverv1.GitChange{Spec: droverv1.GitChangeSpec{Action: action}}
		if condition != "" {
			c.Status.Conditions = []metav1.Condition{{Type: condition, Status: status, Reason: reason}}
		}
		return c
	}
	remove, write := with(droverv1.GitRemove, "", "", ""), with(droverv1.GitWrite, "", "", "")
	for name, tt := range map[string]struct {
		was, is *droverv1.GitChange
		want    bool
	}{
		"a committed removal":  {remove, with(droverv1.GitRemove, droverv1.GitCommitted, "", metav1.ConditionTrue), true},
		"a superseded removal": {remove, with(droverv1.GitRemove, droverv1.GitChangeReady, droverv1.GitSupersededReason, metav1.ConditionFalse), true},
		"a waiting removal":    {remove, with(droverv1.GitRemove, droverv1.GitChangeReady, droverv1.GitWaitingReason, metav1.ConditionFalse), false},
		"a committed write":    {write, with(droverv1.GitWrite, droverv1.GitCommitted, "", metav1.ConditionTrue), false},
	} {
		if got := removalEnded().Update(event.UpdateEvent{ObjectOld: tt.was, ObjectNew: tt.is}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	if !removalEnded().Delete(event.DeleteEvent{Object: remove}) || removalEnded().Delete(event.DeleteEvent{Object: write}) {
		t.Error("only a deleted removal matters")
	}
}
