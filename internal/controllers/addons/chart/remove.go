package chart

import (
	"context"
	"fmt"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// removeAll deletes every release, and lets go of the HelmChartProxy when none is left. That one has gone is an event.
func (c *Controller) removeAll(ctx context.Context, s *scope) error {
	for cluster, releases := range s.releases {
		for _, r := range releases {
			s.removing++
			s.leaves(r)
			if err := c.delete(ctx, s, r, deletedReason); err != nil {
				s.note(problem{cluster, addonsv1.DeletionFailedReason, err, false})
			}
		}
	}
	if s.removing > 0 {
		return nil
	}
	c.forget(s.key())
	patch := ctrlclient.MergeFrom(s.chart.DeepCopy())
	controllerutil.RemoveFinalizer(s.chart, addonsv1.HelmChartProxyFinalizer)
	err := c.Client.Patch(ctx, s.chart, patch)
	if ctrlclient.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of HelmChartProxy %q: %w", s.key(), err)
	}
	s.before = s.chart.DeepCopy()
	return nil
}

// removeOrphans deletes releases on clusters that are not chosen any more, and, where that was asked for, on clusters that are going.
func (c *Controller) removeOrphans(ctx context.Context, s *scope) error {
	chosen := map[string]*clusterv1.Cluster{}
	for _, cluster := range s.clusters {
		chosen[cluster.Name] = cluster
	}
	for name, releases := range s.releases {
		for _, r := range releases {
			if err := c.removeOrphan(ctx, s, r, chosen[name]); err != nil {
				s.note(problem{name, addonsv1.DeletionFailedReason, err, false})
			}
		}
	}
	return nil
}

// removeOrphan gets the release's cluster, nil if that is not chosen.
func (c *Controller) removeOrphan(ctx context.Context, s *scope, r *addonsv1.HelmReleaseProxy, chosen *clusterv1.Cluster) error {
	if chosen != nil {
		if outlives(r) || chosen.DeletionTimestamp.IsZero() || annotations.IsPaused(chosen, chosen) {
			return nil
		}
		return c.delete(ctx, s, r, deletedReason)
	}
	retained, err := plan.Retained(ctx, c.Live, s.chart, r)
	if err != nil {
		return err
	}
	if !retained {
		err = c.delete(ctx, s, r, deletedReason)
	}
	s.leaves(r)
	return err
}

// outlives says that a release is not uninstalled before its Cluster goes.
func outlives(r *addonsv1.HelmReleaseProxy) bool {
	return r.Spec.Options.Uninstall == nil || !r.Spec.Options.Uninstall.BeforeCluster
}
