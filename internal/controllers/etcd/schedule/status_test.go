package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

func TestConditionFollowsFromFacts(t *testing.T) {
	saved := &droverv1.SavedSnapshot{Name: "dev-1"}
	wrong := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	failedBefore := wrong(droverv1.SnapshotFailedReason, "The last snapshot failed: no space")
	missingBefore := wrong(droverv1.SnapshotClusterMissingReason, "cluster not found")
	fine := metav1.Condition{Status: metav1.ConditionTrue, Reason: droverv1.SnapshotSavedReason, Message: "Snapshot dev-1 is saved"}
	for name, test := range map[string]struct {
		facts facts
		want  metav1.Condition
	}{
		"nothing is due": {facts{}, metav1.Condition{
			Status: metav1.ConditionTrue, Reason: droverv1.SnapshotScheduledReason, Message: "The first snapshot is not due yet",
		}},
		"the first one is being saved": {facts{running: true}, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: droverv1.SnapshotRunningReason, Message: "The first snapshot is being saved",
		}},
		"one is saved":                          {facts{ended: true, saved: saved}, fine},
		"another is being saved":                {facts{running: true, before: &fine, saved: saved}, fine},
		"the cluster is missing":                {facts{outcome: &reconcile.Wait{Reason: "ClusterNotFound", Message: "no"}, saved: saved}, wrong("ClusterNotFound", "no")},
		"the schedule is wrong":                 {facts{outcome: &reconcile.Terminal{Reason: "Invalid", Message: "no"}, saved: saved}, wrong("Invalid", "no")},
		"it failed":                             {facts{ended: true, problem: "no space", saved: saved}, failedBefore},
		"it failed, and nothing is pruned":      {facts{ended: true, problem: "no space", pruneProblem: "denied"}, failedBefore},
		"old ones stay":                         {facts{ended: true, saved: saved, pruneProblem: "denied"}, wrong(droverv1.SnapshotPruneFailedReason, "Old snapshots can't be deleted: denied")},
		"a failure stays until the next ends":   {facts{before: &failedBefore, running: true, saved: saved}, failedBefore},
		"a failure ends with the next":          {facts{before: &failedBefore, ended: true, saved: saved}, fine},
		"another problem ends without the next": {facts{before: &missingBefore, saved: saved}, fine},
		"any other error changes nothing":       {facts{outcome: errors.New("conflict"), before: &fine, saved: saved}, fine},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, condition(test.facts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConditionIsBounded(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	for name, f := range map[string]facts{
		"wait": {outcome: &reconcile.Wait{Message: long}}, "terminal": {outcome: &reconcile.Terminal{Message: long}},
		"failure": {ended: true, problem: long}, "prune": {ended: true, pruneProblem: long},
	} {
		if got := condition(f).Message; len(got) > 32768 || !strings.Contains(got, "é") {
			t.Errorf("%s: the message has %d bytes", name, len(got))
		}
	}
}

func TestReportSaysWhenTheNextSnapshotIsDue(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		outcome error
		running bool
		due     time.Time
		want    *metav1.Time
	}{
		"due later":        {due: now.Add(time.Hour), want: timeAt(now.Add(time.Hour))},
		"being saved":      {due: now.Add(time.Hour), running: true},
		"suspended":        {due: now.Add(time.Hour), outcome: &reconcile.Wait{Reason: droverv1.SnapshotSuspendedReason}},
		"no time is known": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{schedule: &droverv1.EtcdSnapshotSchedule{}, running: test.running, due: test.due}
			s.schedule.Generation = 3
			s.report(test.outcome, now)
			if diff := cmp.Diff(test.want, s.schedule.Status.NextTime); diff != "" {
				t.Error(diff)
			}
			want := &metav1.Condition{Type: droverv1.SnapshotsReady, ObservedGeneration: 3}
			if diff := cmp.Diff(want, s.ready(), cmpopts.IgnoreFields(metav1.Condition{}, "Status", "Reason", "Message", "LastTransitionTime")); diff != "" {
				t.Error(diff)
			}
			if s.schedule.Status.ObservedGeneration != 3 {
				t.Errorf("observed generation %d, want 3", s.schedule.Status.ObservedGeneration)
			}
		})
	}
}

func TestEventsOnlyOnNewProblems(t *testing.T) {
	fine := metav1.Condition{Type: droverv1.SnapshotsReady, Status: metav1.ConditionTrue, Reason: droverv1.SnapshotSavedReason}
	failed := metav1.Condition{Type: droverv1.SnapshotsReady, Status: metav1.ConditionFalse, Reason: droverv1.SnapshotFailedReason, Message: "no space"}
	pruning := metav1.Condition{Type: droverv1.SnapshotsReady, Status: metav1.ConditionFalse, Reason: droverv1.SnapshotPruneFailedReason, Message: "denied"}
	suspended := metav1.Condition{Type: droverv1.SnapshotsReady, Status: metav1.ConditionFalse, Reason: droverv1.SnapshotSuspendedReason}
	for name, test := range map[string]struct {
		before *metav1.Condition
		now    metav1.Condition
		want   string
	}{
		"it works":        {&failed, fine, ""},
		"it fails":        {&fine, failed, "no space"},
		"it fails first":  {nil, failed, "no space"},
		"it fails again":  {&failed, failed, ""},
		"another problem": {&failed, pruning, "denied"},
		"it is suspended": {&fine, suspended, ""},
	} {
		s := &scope{schedule: &droverv1.EtcdSnapshotSchedule{}}
		s.schedule.Status.Conditions = []metav1.Condition{test.now}
		if got := s.problemEvent(test.before); got != test.want {
			t.Errorf("%s: event %q, want %q", name, got, test.want)
		}
	}
}
