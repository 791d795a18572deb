package repository

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
)

// pruneUnused deletes the GitRepository of a FluxConfig that isn't connected any more, so that Flux
// doesn't send credentials to a repository that they aren't bound to.
func (c *Controller) pruneUnused(ctx context.Context, s *scope) error {
	if s.facts.denied == "" || s.facts.repository == nil || !isOurs(s.facts.repository) {
		return nil
	}
	return c.prune(ctx)
}

// prune deletes every GitRepository that Drover created and that no connected FluxConfig uses. A
// FluxConfig that is gone doesn't tell which one it used. Kustomizations and clusters stay. So does
// a suspended GitRepository, because the FluxConfig may be moving with its management cluster.
func (c *Controller) prune(ctx context.Context) error {
	repositories := &sourcev1.GitRepositoryList{}
	if err := c.Client.List(ctx, repositories, client.MatchingLabels{fleet.ManagedByLabel: fleet.ManagedBy}); err != nil {
		return fmt.Errorf("listing GitRepositories: %w", err)
	}
	for i := range repositories.Items {
		r := &repositories.Items[i]
		if r.Spec.Suspend {
			continue
		}
		used, err := c.isUsed(ctx, r)
		if err != nil || used {
			if err != nil {
				return err
			}
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Deleting a GitRepository that no FluxConfig uses", "GitRepository", client.ObjectKeyFromObject(r))
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, r, client.Preconditions{UID: &r.UID})); err != nil {
			return fmt.Errorf("deleting GitRepository %q: %w", client.ObjectKeyFromObject(r), err)
		}
	}
	return nil
}

// isUsed reports whether a FluxConfig is connected to a GitRepository.
func (c *Controller) isUsed(ctx context.Context, r *sourcev1.GitRepository) (bool, error) {
	configs := &anywherev1.FluxConfigList{}
	if err := c.Client.List(ctx, configs); err != nil {
		return false, fmt.Errorf("listing FluxConfigs: %w", err)
	}
	for i := range configs.Items {
		config := &configs.Items[i]
		if connection.Key(config) != client.ObjectKeyFromObject(r) || !config.DeletionTimestamp.IsZero() {
			continue
		}
		s := &scope{config: config, key: connection.Key(config)}
		if err := c.connect(ctx, s); err != nil || s.facts.denied == "" && s.wanted.IsFollowed(r) {
			return true, err
		}
	}
	return false, nil
}
