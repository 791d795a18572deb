package chart

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// find lists the clusters and the releases.
func (c *Controller) find(ctx context.Context, s *scope) error {
	var err error
	if s.releases, err = plan.Releases(ctx, c.releases(), s.key()); err != nil {
		return err
	}
	if s.deleting() {
		return nil // which clusters there are does not matter then
	}
	s.clusters, err = plan.Clusters(ctx, c.Client, s.chart)
	if invalid := new(plan.SelectorError); errors.As(err, &invalid) {
		return reconcile.TerminalError(s.unselected(err))
	}
	if err != nil {
		return s.unselected(err)
	}
	return nil
}

// unselected leaves everything as it is.
func (s *scope) unselected(err error) error {
	s.unselectable = err
	for _, releases := range s.releases {
		for _, r := range releases {
			s.leaves(r)
		}
	}
	return err
}

// choose finds the release of each cluster and leaves out those that nothing is done for.
func (c *Controller) choose(_ context.Context, s *scope) error {
	for _, cluster := range s.clusters {
		t := &target{cluster: cluster}
		there := s.releases[cluster.Name]
		for _, r := range there {
			if len(there) > 1 {
				s.leaves(r)
			}
		}
		switch {
		case len(there) > 1:
			t.skip = true
			s.note(problem{cluster.Name, addonsv1.CreationFailedReason, plan.Duplicates(there), true})
		case len(there) == 1:
			t.release = there[0]
		}
		if plan.Excluded(cluster) {
			t.skip = true
		}
		if t.skip && t.release != nil {
			s.leaves(t.release)
		}
		s.targets = append(s.targets, t)
	}
	return nil
}
