// Package change reconciles GitChanges: it commits a change of a cluster's files, asks Flux to
// fetch the commit, and follows it until Flux has applied it.
//
//	Queued ──▶ Committed ──▶ WaitingForFlux ──▶ Applied ──▶ deleted after an hour
//	   │            ▲
//	   └▶ GitUnavailable, Denied (retried) or Invalid (final)
//
// A commit is repeated after a crash and then changes nothing, because the repository has it
// already. Changes of one cluster are committed in the order of their creation, and changes of one
// repository one at a time: a slow Git server occupies one worker, for no longer than a deadline.
//
// The package never applies a spec and never polls Flux: watches trigger every reconcile. The
// webhook has checked who may change what. Start with Reconcile; conditions are computed in
// status.go.
package change

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/sources"
)

// Secrets reads credentials.
type Secrets interface {
	// Get returns the content and the metadata of a Secret, or a NotFound error.
	Get(ctx context.Context, kind string, key client.ObjectKey) (sources.Content, error)
}

// Controller reconciles GitChanges.
type Controller struct {
	// Client reads from the cache of the manager.
	Client  client.Client
	Secrets Secrets
	// FluxNamespace is the namespace of Flux. Credentials are used from no other one, because an
	// administrator binds them there.
	FluxNamespace string
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	Clock             clock.Clock
	// Support tells whether clusters may have sources of their own.
	Support fleet.Support

	// repositories lets one reconcile at a time use a repository.
	repositories slots
}

// Reconcile reconciles one GitChange.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	opening := reconcile.Opening[*droverv1.GitChange]{Client: c.Client}
	visit, err := opening.Open(ctx, request.NamespacedName, &droverv1.GitChange{})
	if visit == nil || err != nil || visit.Deleting() {
		return reconcile.Result(err, 0)
	}
	s := newScope(visit)
	return c.close(ctx, s, reconcile.Run(ctx, s, c.steps(s)))
}

// steps returns the steps for a GitChange.
func (c *Controller) steps(s *scope) []reconcile.Step[*scope] {
	switch {
	case progress.IsFinished(s.change):
		return []reconcile.Step[*scope]{
			{Doing: "finding other changes", Run: c.findOthers},
			{Doing: "deleting the finished change", Run: c.expire},
		}
	case progress.IsCommitted(s.change):
		return []reconcile.Step[*scope]{
			{Doing: "finding other changes", Run: c.findOthers},
			{Doing: "observing Flux", Run: c.observeFlux},
			{Doing: "requesting a fetch", Run: c.requestFetch},
		}
	default:
		return []reconcile.Step[*scope]{
			{Doing: "finding other changes", Run: c.findOthers},
			{Doing: "finding its turn", Run: c.findTurn},
			{Doing: "finding the repository", Run: c.findRepository},
			{Doing: "committing", Run: c.commit},
			{Doing: "observing Flux", Run: c.observeFlux},
			{Doing: "requesting a fetch", Run: c.requestFetch},
		}
	}
}
