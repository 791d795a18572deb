package chart

import (
	"context"
	"errors"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

func (c *Controller) listReleases(ctx context.Context, s *scope) error {
	var err error
	s.releases, err = plan.Releases(ctx, c.releases(), s.Key())
	return err
}

// selectClusters selects clusters and finds the release of each. If that fails, all releases stay.
func (c *Controller) selectClusters(ctx context.Context, s *scope) error {
	if s.clusters, s.selectionErr = plan.Clusters(ctx, c.Client, s.chart); s.selectionErr != nil {
		for _, releases := range s.releases {
			s.after = append(s.after, releases...)
		}
		if invalid := new(plan.SelectorError); errors.As(s.selectionErr, &invalid) {
			return &reconcile.Terminal{Reason: addonsv1.ClusterSelectionFailedReason, Message: s.selectionErr.Error()}
		}
		return s.selectionErr
	}
	for _, cluster := range s.clusters {
		t := &target{cluster: cluster, skip: plan.Excluded(cluster)}
		existing := s.releases[cluster.Name]
		if err := plan.Duplicates(existing); err != nil {
			s.addProblem(problem{cluster.Name, addonsv1.CreationFailedReason, err, true})
			s.after = append(s.after, existing...)
			t.skip = true
		} else if len(existing) == 1 {
			t.release = existing[0]
		}
		if t.skip {
			s.exclude(t)
		}
		s.targets = append(s.targets, t)
	}
	return nil
}
