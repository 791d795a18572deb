package chart

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
)

// Reasons of events.
const (
	createdReason      = "ReleaseCreated"
	updatedReason      = "ReleaseUpdated"
	reinstallingReason = "ReleaseReinstalling"
	deletedReason      = "ReleaseDeleted"
	rolloutReason      = "Rollout"
)

// releaseEvents are the events about releases.
var releaseEvents = []struct{ reason, message string }{
	{createdReason, "Created HelmReleaseProxies for clusters %s"},
	{updatedReason, "Updated HelmReleaseProxies for clusters %s"},
	{reinstallingReason, "Deleted HelmReleaseProxies to reinstall on clusters %s"},
	{deletedReason, "Deleted HelmReleaseProxies for clusters %s"},
}

// emitReleaseEvents emits one event per reason for all clusters, because an event for each would be
// a write for each.
func (c *Controller) emitReleaseEvents(s *scope) {
	for _, m := range releaseEvents {
		if clusters := s.done[m.reason]; len(clusters) > 0 {
			slices.Sort(clusters)
			c.Events.Eventf(s.chart, corev1.EventTypeNormal, m.reason, m.message, text.FirstN(clusters, maxNamed))
		}
	}
}

// emitRolloutEvent emits an event for a new phase, wave or revision of a rollout.
func (c *Controller) emitRolloutEvent(s *scope, before *addonsv1.RolloutStatus) {
	now := s.chart.Status.Rollout
	if now == nil || (before != nil && before.Phase == now.Phase && before.Wave == now.Wave && before.Revision == now.Revision) {
		return
	}
	kind := corev1.EventTypeNormal
	if now.Phase == addonsv1.RolloutPaused || now.Phase == addonsv1.RolloutRollingBack {
		kind = corev1.EventTypeWarning
	}
	c.Events.Eventf(s.chart, kind, rolloutReason, "Rollout of revision %s is %s, wave %d of %d", now.Revision, now.Phase, now.Wave, now.Waves)
}
