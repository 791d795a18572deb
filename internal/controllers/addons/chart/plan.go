package chart

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/addons/rollout"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/addons/history"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// plan decides which clusters may change now, and what those that may not have in the meantime.
func (c *Controller) plan(ctx context.Context, s *scope) error {
	c.settled.retain(s.key(), s.targets)
	if was := s.chart.Status.Rollout; was != nil && was.Phase == addonsv1.RolloutRollingBack && was.Revision == s.revision {
		if err := c.lookBack(ctx, s, was.LastGood); err != nil {
			return err
		}
	}
	s.plan = rollout.Decide(rollout.Input{
		Clusters: s.progress(), Spec: s.chart.Spec.Rollout, Status: s.chart.Status.Rollout, Revision: s.revision,
		Resume: s.chart.Annotations[addonsv1.ResumeRolloutAnnotation], Now: c.Clock.Now(),
	})
	status := s.plan.Status
	if status == nil || status.LastGood == "" || s.good != nil {
		return nil
	}
	if s.plan.Back || s.newcomers() {
		return c.lookBack(ctx, s, status.LastGood)
	}
	return nil
}

// newcomers says that a cluster has nothing yet and that its turn has not come: until then it has what was good before.
func (s *scope) newcomers() bool {
	for _, t := range s.targets {
		if !t.skip && t.release == nil && !s.plan.Allowed[t.cluster.Name] {
			return true
		}
	}
	return false
}

// lookBack works out for each cluster how it would get what was good before.
func (c *Controller) lookBack(ctx context.Context, s *scope, digest string) error {
	if err := c.lastGood(ctx, s, digest); errors.Is(err, history.ErrNoRevision) {
		s.note(problem{"", addonsv1.CreationFailedReason, err, true})
		return nil
	} else if err != nil {
		return err
	}
	return each(s, func(t *target) {
		var p *problem
		if t.back, p = c.look(ctx, s, t, s.good); p != nil {
			s.note(*p)
		}
	})
}

// progress is how far each cluster is. Those that nothing is done for are no part of a rollout; one whose values can't be made has failed.
func (s *scope) progress() []rollout.Cluster {
	var out []rollout.Cluster
	for _, t := range s.targets {
		c := rollout.Cluster{Name: t.cluster.Name, Labels: t.cluster.Labels}
		var missing *desired.MissingError
		switch {
		case t.problem != nil && t.problem.final && !errors.As(t.problem.err, &missing):
			c.OnTarget, c.Failed = true, true
		case t.skip:
			continue
		default:
			c.OnTarget = t.move.Verb == plan.Keep
			c.Ready, c.Failed, c.ReadySince = ready(t.release), failed(t.release), readySince(t.release)
			c.RolledBack = t.release == nil || (t.back.Verb == plan.Keep && c.Ready)
		}
		out = append(out, c)
	}
	return out
}

// ready says that a release is as its spec says now. One that was installed once stays as it is.
func ready(r *addonsv1.HelmReleaseProxy) bool {
	if r == nil {
		return false
	}
	if plan.InstalledOnce(r) {
		return true
	}
	return r.Status.ObservedGeneration == r.Generation && conditions.IsTrue(r, clusterv1.ReadyCondition)
}

// failed says that what the spec says now was tried and did not work.
func failed(r *addonsv1.HelmReleaseProxy) bool {
	return r != nil && !ready(r) && r.Status.ObservedGeneration == r.Generation &&
		conditions.GetReason(r, addonsv1.ReleaseReady) == addonsv1.InstallOrUpgradeFailedReason
}

// readySince is when a release became ready: a release that was ready before a change may not have been seen to be anything else.
func readySince(r *addonsv1.HelmReleaseProxy) time.Time {
	if r == nil {
		return time.Time{}
	}
	since := conditions.GetLastTransitionTime(r, clusterv1.ReadyCondition)
	if since == nil {
		since = &metav1.Time{}
	}
	if a := r.Status.Applied; a != nil && a.At != nil && a.At.After(since.Time) {
		since = a.At
	}
	return since.Time
}
