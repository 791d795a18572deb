package schedule

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// record writes a saved snapshot to the status.
func (s *scope) record(saved result) {
	s.schedule.Status.Failures = 0
	s.schedule.Status.LastSnapshot = &droverv1.SavedSnapshot{
		Name: saved.Name, Time: metav1.NewTime(saved.Manifest.Created), Location: saved.Location, Size: saved.Size, Revision: saved.Manifest.Revision,
	}
}

func (s *scope) ready() *metav1.Condition {
	if c := meta.FindStatusCondition(s.schedule.Status.Conditions, droverv1.SnapshotsReady); c != nil {
		return c.DeepCopy()
	}
	return nil
}

// report computes the status.
func (s *scope) report(outcome error, now time.Time) {
	status := &s.schedule.Status
	c := condition(facts{
		before: s.ready(), outcome: outcome, ended: s.outcome != nil, running: s.running, pruneProblem: s.pruneProblem, problem: s.problem(), saved: status.LastSnapshot,
	})
	c.Type, c.ObservedGeneration, c.LastTransitionTime = droverv1.SnapshotsReady, s.schedule.Generation, metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, c)
	status.ObservedGeneration = s.schedule.Generation
	status.NextTime = nil
	if outcome == nil && !s.running && !s.due.IsZero() {
		status.NextTime = timeAt(s.due)
	}
}

// problem returns why the snapshot that has just ended failed, or "".
func (s *scope) problem() string {
	if s.outcome == nil || s.outcome.Err == nil {
		return ""
	}
	return s.outcome.Err.Error()
}

// facts are what the condition depends on.
type facts struct {
	// before is the condition so far, or nil.
	before *metav1.Condition
	// outcome is why the steps ended.
	outcome error
	// ended means that a snapshot has ended, for the reason problem if it failed.
	ended   bool
	problem string
	// running means that another is being saved.
	running      bool
	pruneProblem string
	// saved is the last snapshot, or nil.
	saved *droverv1.SavedSnapshot
}

// condition returns the condition. What became of the last snapshot stays until the next one ends.
func condition(f facts) metav1.Condition {
	if wait := reconcile.AsWait(f.outcome); wait != nil {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: wait.Reason, Message: text.Truncate(wait.Message)}
	}
	if terminal := reconcile.AsTerminal(f.outcome); terminal != nil {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: terminal.Reason, Message: text.Truncate(terminal.Message)}
	}
	switch {
	case f.problem != "":
		return failed(f.problem)
	case f.pruneProblem != "":
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: droverv1.SnapshotPruneFailedReason, Message: text.Truncate("Old snapshots can't be deleted: " + f.pruneProblem),
		}
	case !f.ended && f.before != nil && f.before.Status == metav1.ConditionFalse && isAboutASnapshot(f.before.Reason):
		return *f.before
	case f.saved != nil:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: droverv1.SnapshotSavedReason, Message: fmt.Sprintf("Snapshot %s is saved", f.saved.Name)}
	case f.running:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: droverv1.SnapshotRunningReason, Message: "The first snapshot is being saved"}
	default:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: droverv1.SnapshotScheduledReason, Message: "The first snapshot is not due yet"}
	}
}

func failed(problem string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: droverv1.SnapshotFailedReason, Message: text.Truncate("The last snapshot failed: " + problem)}
}

func isAboutASnapshot(reason string) bool {
	return reason == droverv1.SnapshotFailedReason || reason == droverv1.SnapshotPruneFailedReason
}

// problemEvent returns the message of an event if the condition has become False, or False for
// another reason.
func (s *scope) problemEvent(before *metav1.Condition) string {
	now := s.ready()
	if now.Status != metav1.ConditionFalse || now.Reason == droverv1.SnapshotSuspendedReason {
		return ""
	}
	if before != nil && before.Status == now.Status && before.Reason == now.Reason {
		return ""
	}
	return now.Message
}
