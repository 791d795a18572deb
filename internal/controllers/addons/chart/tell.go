package chart

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Reasons of events.
const (
	createdReason      = "ReleaseCreated"
	updatedReason      = "ReleaseUpdated"
	reinstallingReason = "ReleaseReinstalling"
	deletedReason      = "ReleaseDeleted"
	rolloutReason      = "Rollout"
)

// moves are the reasons of what is done to releases, with what is told of it.
var moves = []struct{ reason, done string }{
	{createdReason, "Created HelmReleaseProxies for clusters %s"},
	{updatedReason, "Updated HelmReleaseProxies for clusters %s"},
	{reinstallingReason, "Deleted HelmReleaseProxies to reinstall on clusters %s"},
	{deletedReason, "Deleted HelmReleaseProxies for clusters %s"},
}

// did records what was done for a cluster.
func (f *facts) did(reason, cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = map[string][]string{}
	}
	f.done[reason] = append(f.done[reason], cluster)
}

// tellMoves makes one event of what was done for all clusters: an event for each would be a write for each.
func (c *Controller) tellMoves(s *scope) {
	for _, m := range moves {
		if clusters := s.done[m.reason]; len(clusters) > 0 {
			slices.Sort(clusters)
			c.Events.Eventf(s.chart, corev1.EventTypeNormal, m.reason, m.done, some(clusters))
		}
	}
}

// tellRollout makes an event of a new phase of a rollout.
func (c *Controller) tellRollout(s *scope) {
	was, is := s.before.Status.Rollout, s.chart.Status.Rollout
	if is == nil || (was != nil && was.Phase == is.Phase && was.Wave == is.Wave && was.Revision == is.Revision) {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Phase == addonsv1.RolloutPaused || is.Phase == addonsv1.RolloutRollingBack {
		kind = corev1.EventTypeWarning
	}
	c.Events.Eventf(s.chart, kind, rolloutReason, "Rollout of revision %s is %s, wave %d of %d", is.Revision, is.Phase, is.Wave, is.Waves)
}
