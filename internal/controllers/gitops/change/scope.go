package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/git"
)

// scope is the state of one reconcile.
type scope struct {
	visit *reconcile.Visit[*droverv1.GitChange]
	// change is the object of the visit.
	change *droverv1.GitChange

	// others are the other changes of the cluster.
	others     []droverv1.GitChange
	repository connection.Repository
	remote     git.Remote
	// credentials is the metadata of the Secret that the remote has its credentials from.
	credentials metav1.Object

	facts facts
	// next is when to reconcile a finished change.
	next time.Duration
}

// newScope returns the scope of a visit, with what earlier ones found out.
func newScope(visit *reconcile.Visit[*droverv1.GitChange]) *scope {
	s := &scope{visit: visit, change: visit.Object, facts: facts{cluster: visit.Object.Spec.Cluster, action: visit.Object.Spec.Action}}
	if done := meta.FindStatusCondition(s.change.Status.Conditions, droverv1.GitCommitted); progress.IsCommitted(s.change) {
		s.facts.committed, s.facts.committedAt = true, done.LastTransitionTime.Time
		s.facts.commit, s.facts.changed = s.change.Status.Commit, done.Reason == droverv1.GitCommittedReason
	}
	return s
}

// findOthers lists the other changes of the cluster.
func (c *Controller) findOthers(ctx context.Context, s *scope) error {
	all := &droverv1.GitChangeList{}
	if err := c.Client.List(ctx, all, client.InNamespace(s.change.Namespace)); err != nil {
		return err
	}
	s.others = slices.DeleteFunc(all.Items, func(other droverv1.GitChange) bool {
		return other.Spec.Cluster != s.change.Spec.Cluster || other.UID == s.change.UID
	})
	s.facts.superseded = slices.ContainsFunc(s.others, func(other droverv1.GitChange) bool {
		return isOlder(s.change, &other) && progress.IsCommitted(&other) && other.Spec.Action == droverv1.GitWrite
	})
	return nil
}

// findTurn waits for older changes of the cluster, whose commits must come first.
func (c *Controller) findTurn(_ context.Context, s *scope) error {
	for i := range s.others {
		other := &s.others[i]
		if isOlder(other, s.change) && !progress.IsCommitted(other) && !progress.IsFinished(other) && other.DeletionTimestamp.IsZero() {
			return &reconcile.Wait{Reason: droverv1.GitQueuedReason, Message: fmt.Sprintf("Waiting for GitChange %q, an older change of the cluster", other.Name)}
		}
	}
	return nil
}

// isOlder reports whether one change was created before another.
func isOlder(a, b *droverv1.GitChange) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// finishedAt returns when a finished change finished.
func finishedAt(change *droverv1.GitChange) time.Time {
	return meta.FindStatusCondition(change.Status.Conditions, droverv1.GitChangeReady).LastTransitionTime.Time
}

// close writes the status if it has changed. An error that is not an outcome says nothing about the
// change, except that a commit before it is recorded.
func (c *Controller) close(ctx context.Context, s *scope, outcome error) (ctrl.Result, error) {
	isOutcome := outcome == nil || reconcile.AsWait(outcome) != nil || reconcile.AsTerminal(outcome) != nil
	if progress.IsFinished(s.change) || !isOutcome && !s.facts.committed {
		return s.visit.Close(ctx, outcome, s.next)
	}
	report(s.change, s.facts.with(outcome), c.Clock.Now())
	if progress.IsFinished(s.change) && isOutcome {
		return s.visit.Close(ctx, nil, lifetime) // It is deleted then, whatever its result is.
	}
	return s.visit.Close(ctx, outcome, 0)
}
