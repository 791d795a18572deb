// Package progress determines how far a GitChange has come: whether it is committed, whether Flux
// has fetched the commit, and whether it is finished.
//
// It contains only pure functions, which the controllers of GitChanges and of fleets share.
package progress

import (
	"slices"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// IsCommitted reports whether the branch has a change.
func IsCommitted(change *droverv1.GitChange) bool {
	return meta.IsStatusConditionTrue(change.Status.Conditions, droverv1.GitCommitted)
}

// IsFinished reports whether nothing more will happen to a change.
func IsFinished(change *droverv1.GitChange) bool {
	ready := meta.FindStatusCondition(change.Status.Conditions, droverv1.GitChangeReady)
	if ready == nil {
		return false
	}
	final := []string{droverv1.GitInvalidReason, droverv1.GitSupersededReason}
	return ready.Status == metav1.ConditionTrue || slices.Contains(final, ready.Reason)
}

// IsFetched reports whether the artifact of a repository is the commit of a change or a later one.
// If that isn't known, it is false.
func IsFetched(change *droverv1.GitChange, source *sourcev1.GitRepository) bool {
	if !IsCommitted(change) || source.Status.Artifact == nil || !meta.IsStatusConditionTrue(source.Status.Conditions, fluxmeta.ReadyCondition) {
		return false
	}
	committed := meta.FindStatusCondition(change.Status.Conditions, droverv1.GitCommitted)
	return HasCommit(source.Status.Artifact.Revision, change.Status.Commit) ||
		IsAfter(RequestTime(source.Status.LastHandledReconcileAt), committed.LastTransitionTime.Time)
}

// HasCommit reports whether a revision of Flux is a commit.
func HasCommit(revision, commit string) bool {
	return commit != "" && strings.Contains(revision, commit)
}

// RequestTime returns the time of a request to Flux, or zero if neither Drover nor Flux's own
// command made it.
func RequestTime(value string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}
	}
	return at
}

// IsAfter reports whether a request to Flux was certainly made after a push. Revisions have no
// order, but what Flux has fetched for such a request has the commit.
func IsAfter(request, committedAt time.Time) bool {
	return !request.Before(EarliestRequest(committedAt))
}

// EarliestRequest returns the first time that is certainly after a push: conditions have whole
// seconds.
func EarliestRequest(committedAt time.Time) time.Time {
	return committedAt.Truncate(time.Second).Add(time.Second)
}
