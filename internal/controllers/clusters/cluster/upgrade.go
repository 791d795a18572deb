package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// keepInStep makes a Kubernetes upgrade wait for the add-ons of its current stage: until then, the
// objects are built with the version that machines have. Without an upgrade, it reads nothing.
func (c *Controller) keepInStep(ctx context.Context, s *scope) error {
	f, err := c.upgradeFacts(s)
	if err != nil {
		return err
	}
	if f.Recorded != nil || f.Present != "" && f.Present != f.Wanted {
		if f.AddOns, err = c.addOns(ctx, s, f.Wanted); err != nil {
			return err
		}
	}
	d := lockstep.Decide(f)
	s.upgrade, s.version = &d, d.Version
	s.input.KubernetesVersion, s.input.HoldWorkers = d.Version, d.HoldWorkers
	if d.Upgrade != nil {
		s.input.Upgrade = d.Upgrade.String()
		s.input.HoldMachines = d.Version != d.Upgrade.To
	}
	c.eventSkipped(s, f.Wanted)
	return nil
}

// upgradeFacts returns what an upgrade depends on, except for add-ons.
func (c *Controller) upgradeFacts(s *scope) (lockstep.Facts, error) {
	wanted, err := c.Version(s.config.Cluster.Spec.KubernetesVersion)
	if err != nil {
		return lockstep.Facts{}, fail(anywherev1.ClusterInvalidReason, "%s", err.Error())
	}
	f := lockstep.Facts{
		Wanted: wanted, Skip: s.cluster.Annotations[anywherev1.SkipAddOnWaitAnnotation],
		Timeout: lockstep.Timeout(s.cluster), Now: c.Clock.Now(), ControlPlaneDone: s.rolledOut(wanted),
	}
	if s.live.cluster != nil {
		f.Recorded = lockstep.Of(s.live.cluster)
	}
	if s.live.controlPlane != nil {
		f.Present = s.live.controlPlane.Spec.Version
	}
	f.WorkersDone, err = c.workersDone(s, wanted)
	return f, err
}

// workersDone reports whether all workers have the versions in the spec and are ready.
func (c *Controller) workersDone(s *scope, wanted string) (bool, error) {
	versions := map[string]string{}
	for _, d := range s.live.workers {
		versions[d.Name] = d.Spec.Template.Spec.Version
	}
	for _, g := range s.config.Cluster.Spec.WorkerNodeGroupConfigurations {
		version := wanted
		if own := g.KubernetesVersion; own != nil && *own != "" {
			var err error
			if version, err = c.Version(*own); err != nil {
				return false, fail(anywherev1.ClusterInvalidReason, "%s", err.Error())
			}
		}
		if versions[build.WorkersName(s.cluster.Name, g.Name)] != version {
			return false, nil
		}
	}
	f := facts{cluster: s.cluster, controlPlane: s.live.controlPlane, workers: s.live.workers, sets: s.live.sets, machines: s.live.machines}
	return workersReady(f).status == metav1.ConditionTrue, nil
}

// eventSkipped records that an upgrade continues without add-ons that are not ready.
func (c *Controller) eventSkipped(s *scope, wanted string) {
	if skipped := s.upgrade.Skipped; len(skipped) > 0 {
		c.Events.Event(s.cluster, corev1.EventTypeWarning, addOnsSkippedReason,
			text.Truncate(fmt.Sprintf("The upgrade to Kubernetes %s did not wait for add-ons: %s", wanted, lockstep.Describe(skipped))))
	}
}

// setUpgraded reports that an upgrade has ended. A cluster that was never upgraded has no such
// condition.
func setUpgraded(to *anywherev1.ClusterStatus, f facts) {
	was := meta.FindStatusCondition(to.Conditions, anywherev1.KubernetesUpgraded)
	if was != nil && f.upgrade != nil && f.upgrade.Upgrade == nil {
		set(to, f, anywherev1.KubernetesUpgraded, yes(anywherev1.UpToDateReason))
	}
}

// upgraded returns how far an upgrade is.
func upgraded(f facts) verdict {
	reason := anywherev1.RollingUpgradeInProgressReason
	switch d := f.upgrade; {
	case d.TimedOut:
		reason = anywherev1.AddOnsTimedOutReason
	case len(d.Waiting) > 0:
		reason = anywherev1.WaitingForAddOnsReason
	}
	return no(reason, "%s", f.upgrade.Message())
}

// isUpgrading reports whether the Kubernetes version of a Cluster is being upgraded.
func isUpgrading(c *anywherev1.Cluster) bool {
	return meta.IsStatusConditionFalse(c.Status.Conditions, anywherev1.KubernetesUpgraded)
}

// waitsForAddOns returns why workers that are held back wait for add-ons, or nil.
func waitsForAddOns(f facts) *verdict {
	if f.upgrade == nil || f.upgrade.Upgrade == nil || f.upgrade.Upgrade.Step != lockstep.BeforeWorkers {
		return nil
	}
	v := upgraded(f)
	return &v
}
