// Package chart reconciles HelmChartProxies: it keeps one HelmReleaseProxy for each selected
// cluster, and rolls out changes in waves if asked to.
//
// It makes no call to a workload cluster and knows no package tool; package release handles
// HelmReleaseProxies. Package desired computes what is wanted on a cluster, package plan how a
// release has to change, and package rollout which clusters may change now. A problem with one
// cluster never stops the others. Start with Reconcile; conditions are set in status.go.
package chart

import (
	"context"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/history"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// parallel is how many clusters of one HelmChartProxy are handled at a time.
const parallel = 8

// Controller reconciles HelmChartProxies.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Live reads from the API server what is too rare to be cached. SetupWithManager sets it if it
	// is nil.
	Live ctrlclient.Reader
	// Indexed reports that the cache has the indexes of package index, which SetupWithManager adds.
	Indexed bool
	Events  record.EventRecorder
	Clock   clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	programs programs
	settled  settled
	watch    *external.ObjectTracker // nil outside a manager
}

// Reconcile updates the releases of one HelmChartProxy.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	opening := reconcile.Opening[*addonsv1.HelmChartProxy]{
		Client: c.Client, Skip: c.skip, Finalizer: addonsv1.HelmChartProxyFinalizer, Forget: c.forget,
	}
	visit, err := opening.Open(ctx, req.NamespacedName, &addonsv1.HelmChartProxy{})
	if err != nil || visit == nil {
		return reconcile.Result(err, 0)
	}
	s := newScope(visit)
	err = reconcile.Run(ctx, s, c.steps(s))
	return c.close(ctx, s, err)
}

// skip ignores objects that are paused, filtered out, or moved to another management cluster and
// only deleted here. Events of clusters and releases bypass the filter of the watch.
func (c *Controller) skip(_ context.Context, chart *addonsv1.HelmChartProxy) (bool, error) {
	_, moved := chart.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	filtered := c.WatchFilter != "" && chart.Labels[clusterv1.WatchLabel] != c.WatchFilter
	return moved || filtered || annotations.HasPaused(chart), nil
}

// steps returns the steps of a reconcile. A step records problems with single clusters as facts;
// an error ends the reconcile.
func (c *Controller) steps(s *scope) []reconcile.Step[*scope] {
	if s.Deleting() {
		return []reconcile.Step[*scope]{
			{Doing: "listing releases", Run: c.listReleases},
			{Doing: "deleting releases", Run: c.deleteAll},
		}
	}
	return []reconcile.Step[*scope]{
		{Doing: "listing releases", Run: c.listReleases},
		{Doing: "selecting clusters", Run: c.selectClusters},
		{Doing: "recording the revision", Run: c.recordRevision},
		{Doing: "evaluating clusters", Run: c.evaluateAll},
		{Doing: "planning the rollout", Run: c.planRollout},
		{Doing: "updating releases", Run: c.applyAll},
		{Doing: "deleting orphaned releases", Run: c.deleteOrphans},
	}
}

// close reports what was done, writes the status, and returns when to reconcile again.
func (c *Controller) close(ctx context.Context, s *scope, err error) (ctrl.Result, error) {
	c.emitReleaseEvents(s)
	if (err == nil || s.selectionErr != nil) && !s.Released(addonsv1.HelmChartProxyFinalizer) {
		s.setStatus()
	}
	before := s.Before().Status.Rollout
	if saved := ctrlclient.IgnoreNotFound(s.Save(ctx)); saved != nil {
		return reconcile.Result(saved, 0)
	}
	c.emitRolloutEvent(s, before)
	if err == nil {
		err = s.retriable()
	}
	return reconcile.Result(err, s.plan.Next)
}

// forget drops what is remembered of a HelmChartProxy that is gone.
func (c *Controller) forget(key ctrlclient.ObjectKey) {
	c.programs.forget(key)
	c.settled.forget(key)
}

func (c *Controller) releases() index.Releases {
	return index.Releases{Reader: c.Client, Indexed: c.Indexed}
}

func (c *Controller) history() history.Keeper {
	return history.Keeper{Reader: c.Live, Client: c.Client}
}
