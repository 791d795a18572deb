package chart

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// deleteAll deletes every release, and removes the finalizer when none is left. The deletion of a
// release is an event.
func (c *Controller) deleteAll(ctx context.Context, s *scope) error {
	for cluster, releases := range s.releases {
		for _, r := range releases {
			s.deleting++
			s.addAfter(r)
			if err := c.delete(ctx, s, r, deletedReason); err != nil {
				s.addProblem(problem{cluster, addonsv1.DeletionFailedReason, err, false})
			}
		}
	}
	if s.deleting > 0 {
		return nil
	}
	controllerutil.RemoveFinalizer(s.chart, addonsv1.HelmChartProxyFinalizer)
	return nil
}

// deleteOrphans deletes releases on clusters that are no longer selected and, where asked for, on
// clusters that are being deleted.
func (c *Controller) deleteOrphans(ctx context.Context, s *scope) error {
	chosen := map[string]*clusterv1.Cluster{}
	for _, cluster := range s.clusters {
		chosen[cluster.Name] = cluster
	}
	for name, releases := range s.releases {
		for _, r := range releases {
			if err := c.deleteOrphan(ctx, s, r, chosen[name]); err != nil {
				s.addProblem(problem{name, addonsv1.DeletionFailedReason, err, false})
			}
		}
	}
	return nil
}

// deleteOrphan gets the cluster of the release, or nil if it is not selected.
func (c *Controller) deleteOrphan(ctx context.Context, s *scope, r *addonsv1.HelmReleaseProxy, chosen *clusterv1.Cluster) error {
	if chosen != nil {
		if outlivesCluster(r) || chosen.DeletionTimestamp.IsZero() || annotations.IsPaused(chosen, chosen) {
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
	s.addAfter(r)
	return err
}

// outlivesCluster reports whether a release is not uninstalled before its Cluster is deleted.
func outlivesCluster(r *addonsv1.HelmReleaseProxy) bool {
	return r.Spec.Options.Uninstall == nil || !r.Spec.Options.Uninstall.BeforeCluster
}
