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

// planRollout decides which clusters may change now, and what the others have until then.
func (c *Controller) planRollout(ctx context.Context, s *scope) error {
	c.settled.retain(s.Key(), s.targets)
	if was := s.chart.Status.Rollout; was != nil && was.Phase == addonsv1.RolloutRollingBack && was.Revision == s.revision {
		if err := c.evaluateLastGood(ctx, s, was.LastGood); err != nil {
			return err
		}
	}
	s.plan = rollout.Decide(rollout.Input{
		Clusters: s.progress(), Spec: s.chart.Spec.Rollout, Status: s.chart.Status.Rollout, Revision: s.revision,
		Resume: s.chart.Annotations[addonsv1.ResumeRolloutAnnotation], Now: c.Clock.Now(),
	})
	status := s.plan.Status
	if status == nil || status.LastGood == "" || s.lastGood != nil {
		return nil
	}
	if s.plan.Back || s.hasNewClusters() {
		return c.evaluateLastGood(ctx, s, status.LastGood)
	}
	return nil
}

// hasNewClusters reports whether a cluster has no release and its wave has not started. It gets the
// last good spec until then.
func (s *scope) hasNewClusters() bool {
	for _, t := range s.targets {
		if !t.skip && t.release == nil && !s.plan.Allowed[t.cluster.Name] {
			return true
		}
	}
	return false
}

// evaluateLastGood finds the change of each cluster that leads to the last good spec.
func (c *Controller) evaluateLastGood(ctx context.Context, s *scope, digest string) error {
	revision, err := history.Find(ctx, c.Live, s.chart, digest)
	if errors.Is(err, history.ErrNoRevision) {
		s.addProblem(problem{"", addonsv1.CreationFailedReason, err, true})
		return nil
	}
	if err != nil {
		return err
	}
	revision.Spec.ServiceAccountName = s.chart.Spec.ServiceAccountName // permissions are never rolled back
	program, problems := desired.Compile(&revision.Spec)
	if len(problems) > 0 {
		return problems.ToAggregate()
	}
	s.lastGood = program
	return forEach(s, func(t *target) {
		var p *problem
		if t.rollback, p = c.evaluate(ctx, s, t, s.lastGood); p != nil {
			s.addProblem(*p)
		}
	})
}

// progress returns the progress of each cluster. Skipped clusters are not part of a rollout; one
// whose values can't be rendered has failed.
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
			c.OnTarget = t.change.Verb == plan.Keep
			c.Ready, c.Failed, c.ReadySince = ready(t.release), failed(t.release), readySince(t.release)
			c.RolledBack = t.release == nil || (t.rollback.Verb == plan.Keep && c.Ready)
		}
		out = append(out, c)
	}
	return out
}

// ready reports whether a release has its current spec. One that was installed once always has.
func ready(r *addonsv1.HelmReleaseProxy) bool {
	if r == nil {
		return false
	}
	if plan.InstalledOnce(r) {
		return true
	}
	return r.Status.ObservedGeneration == r.Generation && conditions.IsTrue(r, clusterv1.ReadyCondition)
}

// failed reports whether the current spec was tried and failed.
func failed(r *addonsv1.HelmReleaseProxy) bool {
	return r != nil && !ready(r) && r.Status.ObservedGeneration == r.Generation &&
		conditions.GetReason(r, addonsv1.ReleaseReady) == addonsv1.InstallOrUpgradeFailedReason
}

// readySince returns when a release became ready with its current spec: the condition may not have
// changed in between.
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
