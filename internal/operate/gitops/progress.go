package gitops

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// Progress is how far a commit has come.
type Progress string

// Values of Progress, those that need somebody's help first.
const (
	Rejected Progress = "rejected"
	Pending  Progress = "pending"
	// Unknown means that the caller may not read it.
	Unknown    Progress = "unknown"
	Applied    Progress = "applied"
	Superseded Progress = "superseded"
)

// waiting are the states of a cluster, and reasons of Flux, that pass by themselves.
var waiting = []string{stateUnknown, stateNotInGit, "Progressing", "ProgressingWithRetry", "DependencyNotReady"}

// Progress returns how far the newest commit about the cluster has come.
func (s ClusterStatus) Progress() Progress {
	switch {
	case s.State == stateReady:
		return Applied
	case s.State == stateUnread:
		return Unknown
	case slices.Contains(waiting, s.State):
		return Pending
	}
	return Rejected
}

// rejections are the reasons why a GitChange doesn't arrive without somebody's help.
var rejections = []string{droverv1.GitDeniedReason, droverv1.GitInvalidReason, droverv1.GitApplyFailedReason}

// ProgressOf returns how far a GitChange has come, and why it is not applied.
func ProgressOf(g *droverv1.GitChange) (progress Progress, message string) {
	if apimeta.IsStatusConditionTrue(g.Status.Conditions, droverv1.GitChangeReady) {
		return Applied, ""
	}
	for _, kind := range []string{droverv1.GitCommitted, droverv1.GitApplied, droverv1.GitChangeReady} {
		c := apimeta.FindStatusCondition(g.Status.Conditions, kind)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue:
		case c.Reason == droverv1.GitSupersededReason:
			return Superseded, c.Message
		case slices.Contains(rejections, c.Reason):
			return Rejected, c.Message
		default:
			return Pending, c.Message
		}
	}
	return Pending, "Waiting for the controller"
}
