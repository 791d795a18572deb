package change

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// facts are what is known about a change.
type facts struct {
	cluster string
	action  droverv1.GitAction

	// committed means that the branch has the change since committedAt, in commit or before it.
	// changed means that the controller made the commit.
	committed   bool
	committedAt time.Time
	commit      string
	changed     bool
	// reason and message are why the change is not committed.
	reason, message string

	// superseded means that a later change has written the cluster.
	superseded bool
	// observed means that flux is known.
	observed bool
	flux     fluxFacts
}

// with adds why the steps ended.
func (f facts) with(outcome error) facts {
	if wait := reconcile.AsWait(outcome); wait != nil {
		f.reason, f.message = wait.Reason, wait.Message
	}
	if terminal := reconcile.AsTerminal(outcome); terminal != nil {
		f.reason, f.message = terminal.Reason, terminal.Message
	}
	return f
}

// report writes the facts to the status. A change that has just finished is kept from then on.
func report(change *droverv1.GitChange, f facts, now time.Time) {
	change.Status.ObservedGeneration = change.Generation
	change.Status.Commit = f.commit
	committed, applied := f.committedCondition(), f.appliedCondition()
	for _, c := range []metav1.Condition{committed, applied, readyCondition(committed, applied)} {
		c.ObservedGeneration, c.LastTransitionTime = change.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&change.Status.Conditions, c)
	}
	if progress.IsFinished(change) {
		meta.FindStatusCondition(change.Status.Conditions, droverv1.GitChangeReady).LastTransitionTime = metav1.NewTime(now)
	}
}

// committedCondition says whether the branch has the change.
func (f facts) committedCondition() metav1.Condition {
	c := metav1.Condition{Type: droverv1.GitCommitted, Status: metav1.ConditionTrue}
	switch {
	case f.committed && f.changed:
		c.Reason, c.Message = droverv1.GitCommittedReason, "Committed "+short(f.commit)
	case f.committed:
		c.Reason, c.Message = droverv1.GitUnchangedReason, "The files have the requested content"
	case f.reason == "" || f.reason == droverv1.GitQueuedReason:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, droverv1.GitQueuedReason, f.message
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, f.reason, text.Truncate(f.message)
	}
	return c
}

// appliedCondition says whether Flux has carried out the change.
func (f facts) appliedCondition() metav1.Condition {
	c := metav1.Condition{Type: droverv1.GitApplied, Status: metav1.ConditionUnknown, Reason: droverv1.GitWaitingReason}
	switch {
	case !f.committed:
		c.Message = "The change is not committed yet"
	case !f.observed:
		c.Message = "Waiting for Flux"
	case f.action == droverv1.GitRemove:
		f.removed(&c)
	default:
		f.written(&c)
	}
	c.Message = text.Truncate(c.Message)
	return c
}

// written says whether Flux has applied the files of the cluster.
func (f facts) written(c *metav1.Condition) {
	switch {
	case f.includes(f.flux.applied):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, droverv1.GitAppliedReason, "Flux applied "+f.flux.applied
	case f.flux.applyProblem != "" && f.includes(f.flux.attempted):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, droverv1.GitApplyFailedReason, "Flux can't apply the files: "+f.flux.applyProblem
	case f.flux.fetchProblem != "":
		c.Message = "Waiting for Flux to fetch the repository: " + f.flux.fetchProblem
	case !f.includes(f.flux.fetched):
		c.Message = fmt.Sprintf("Waiting for Flux to fetch %s", short(f.commit))
	default:
		c.Message = fmt.Sprintf("Waiting for Flux to apply %s", f.flux.fetched)
	}
}

// removed says whether Flux has deleted the cluster.
func (f facts) removed(c *metav1.Condition) {
	switch {
	case f.superseded:
		c.Status, c.Reason = metav1.ConditionFalse, droverv1.GitSupersededReason
		c.Message = fmt.Sprintf("A later change has written cluster %q again", f.cluster)
	case !f.flux.hasCluster && !f.flux.hasKustomization:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, droverv1.GitAppliedReason, fmt.Sprintf("Cluster %q is deleted", f.cluster)
	case f.flux.fetchProblem != "":
		c.Message = "Waiting for Flux to fetch the repository: " + f.flux.fetchProblem
	case f.flux.hasCluster:
		c.Message = fmt.Sprintf("Waiting for the deletion of cluster %q; a ready cluster is deleted after drover gitops confirm", f.cluster)
	default:
		c.Message = fmt.Sprintf("Waiting for Flux to forget cluster %q", f.cluster)
	}
}

// readyCondition summarizes the others: it is the first that is not true, or the last.
func readyCondition(committed, applied metav1.Condition) metav1.Condition {
	ready := applied
	if committed.Status != metav1.ConditionTrue {
		ready = committed
	}
	ready.Type = droverv1.GitChangeReady
	return ready
}

// short abbreviates a commit for people.
func short(commit string) string { return commit[:min(len(commit), 12)] }
