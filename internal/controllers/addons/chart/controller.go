// Package chart reconciles HelmChartProxies: it keeps one HelmReleaseProxy for each cluster that the selector matches, as the templates
// of the HelmChartProxy have it, and takes changes to them in waves if asked to.
//
// It makes no call to a workload cluster and knows no package tool; what becomes of a HelmReleaseProxy is package release's concern. What
// is wanted on a cluster is worked out by package desired, which clusters may change by package rollout. One cluster that can't be served
// never stops the others. Start with Reconcile; the choice for one cluster is in decide.go, conditions are made in status.go.
package chart

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/external"

	"github.com/drover-dev/drover/internal/controllers/fresh"
	"github.com/drover-dev/drover/internal/model/addons/history"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// parallel is how many clusters of one HelmChartProxy are worked on at a time.
const parallel = 8

// Controller reconciles HelmChartProxies.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Live reads from the API server, for what is too rare to be cached. SetupWithManager sets it if it is nil.
	Live ctrlclient.Reader
	// Indexed says that the cache has the indexes of package index, which SetupWithManager adds.
	Indexed bool
	// Events receives what was done.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	programs programs
	settled  settled
	writes   fresh.Writes
	watch    *external.ObjectTracker // nil outside a manager
}

// step is one part of a reconcile. What concerns a single cluster it notes as a problem; an error ends the reconcile.
type step func(context.Context, *scope) error

// Reconcile brings the releases of one HelmChartProxy closer to what its spec says.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if errors.Is(err, errStale) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	for _, step := range c.steps(s) {
		if err = step(ctx, s); err != nil {
			break
		}
	}
	return c.close(ctx, s, err)
}

// steps is what there is to do for a HelmChartProxy.
func (c *Controller) steps(s *scope) []step {
	if s.deleting() {
		return []step{c.find, c.removeAll}
	}
	return []step{
		c.find,
		c.choose,
		c.remember,
		c.examine,
		c.plan,
		c.act,
		c.removeOrphans,
	}
}

func (c *Controller) releases() index.Releases {
	return index.Releases{Reader: c.Client, Indexed: c.Indexed}
}

func (c *Controller) history() history.Keeper {
	return history.Keeper{Reader: c.Live, Client: c.Client}
}
