// Package active reconciles PackageBundleControllers: it finds the Kubernetes version of a cluster,
// checks registries for the newest bundle for it, downloads the active bundle, and copies the
// credentials that packages need to pull images.
//
//	cluster ──version──▶ v1-36-latest ──registry──▶ PackageBundle ──policy──▶ spec.activeBundle
//
// Requests to clusters and registries run beside the workers and trigger a reconcile when they are
// done. A reconcile that finds nothing to do makes no request. Package bundles verifies bundles,
// and package install installs packages. Start with Reconcile; decisions are made in decide.go,
// conditions in status.go.
package active

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/util/annotations"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/workload"
)

// Source downloads bundles. source.Bundles implements it.
type Source interface {
	Get(ctx context.Context, w source.Wanted) (*source.Found, error)
	// Host returns the host of a registry and of its mirror.
	Host(registry string) (own, mirror string)
}

// Controller reconciles PackageBundleControllers.
type Controller struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Secrets reads Secrets and the metadata of namespaces.
	Secrets *Secrets
	Source  Source
	// Clusters are shared connections. Their events must be passed to Notice.
	Clusters *workload.Clusters
	// Keys are the keys that may sign bundles.
	Keys bundle.Keys
	// Version is the version of Drover.
	Version string
	// Limits limits concurrent requests, in total and per cluster or registry.
	Limits operation.Limits
	// DeletionTimeout is how long an unreachable cluster delays the deletion of a
	// PackageBundleController. The default is 10 minutes.
	DeletionTimeout time.Duration
	Events          record.EventRecorder
	Clock           clock.PassiveClock

	// The runners query versions of clusters, check registries for bundles, and copy credentials.
	versionQueries, bundleChecks, copies *operation.Runner

	verdicts *lru.Cache // edition → verdict

	memory memory
	// deletions are when objects were deleted.
	deletions reconcile.Ages
	queue     atomic.Pointer[queue]
}

// queue is the queue of the controller's workers.
type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

// visit is one reconcile of one object.
type visit struct {
	*Controller
	*reconcile.Visit[*packagesv1.PackageBundleController]

	facts  facts
	choice choice
	// decided is set once choice is.
	decided bool
}

// Reconcile keeps the bundle and the credentials of one cluster up to date.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	opened, err := c.opening().Open(ctx, request.NamespacedName, &packagesv1.PackageBundleController{})
	if opened == nil || err != nil {
		return ctrl.Result{}, err
	}
	v := &visit{Controller: c, Visit: opened}
	last := opened.Object.Status.DeepCopy()
	outcome := reconcile.Run(ctx, v, []reconcile.Step[*visit]{
		{Run: collectResults},
		{Run: observe},
		{Run: chooseActions},
		{Doing: "releasing the object", Run: finish},
		{Run: startRequests},
		{Run: activate},
		{Doing: "copying credentials", Run: syncCredentials},
	})
	if v.decided && !v.choice.ends && v.choice.activate == "" { // a new spec triggers another reconcile
		report(v.Object, v.facts, v.choice)
	}
	result, err := v.Close(ctx, outcome, v.choice.after)
	if equality.Semantic.DeepEqual(v.Before().Status, v.Object.Status) { // it was written
		v.recordEvents(last)
	}
	return result, err
}

func (c *Controller) opening() reconcile.Opening[*packagesv1.PackageBundleController] {
	return reconcile.Opening[*packagesv1.PackageBundleController]{
		Client: c.Client, Forget: c.forget,
		Skip: func(_ context.Context, o *packagesv1.PackageBundleController) (bool, error) {
			return annotations.HasPaused(o), nil
		},
	}
}

// forget drops everything about an object that is gone.
func (c *Controller) forget(key client.ObjectKey) {
	c.memory.Forget(key)
	c.deletions.Forget(key)
	for _, r := range []*operation.Runner{c.versionQueries, c.bundleChecks, c.copies} {
		r.Take(key)
	}
}

// chooseActions decides what this reconcile does.
func chooseActions(_ context.Context, v *visit) error {
	v.choice, v.decided = decide(v.facts), true
	return nil
}
