// Package active reconciles PackageBundleControllers: it finds out which Kubernetes a cluster runs, looks for the newest bundle for it, keeps
// the bundle that the cluster uses at hand, and gives the cluster what its packages need to pull images.
//
//	cluster ──version──▶ v1-36-latest ──registry──▶ PackageBundle ──policy──▶ spec.activeBundle
//
// What takes time, questions to clusters and registries, happens beside the workers, and is told by waking them. A reconcile that finds
// everything as it should be makes no request to anybody. What a bundle is worth is package bundles' concern, what becomes of packages that
// of package install. Start with Reconcile; choices are made in decide.go, conditions in status.go.
package active

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/util/annotations"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/fresh"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/workload"
)

// Source has bundles. Bundles of package source is one.
type Source interface {
	Get(ctx context.Context, w source.Wanted) (*source.Found, error)
	// Host is that of a registry.
	Host(registry string) (own, mirror string)
}

// Controller reconciles PackageBundleControllers.
type Controller struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Secrets reads Secrets and the metadata of namespaces.
	Secrets *Secrets
	Source  Source
	// Clusters are connections that are shared with others. Notice must be told what they say.
	Clusters *workload.Clusters
	// Keys are those that bundles may be signed with.
	Keys bundle.Keys
	// Version is Drover's own.
	Version string
	// Limits bound what is done at a time: in all, and for one cluster or one registry.
	Limits operation.Limits
	// WayOut is how long a cluster that does not answer keeps a PackageBundleController from being deleted, 10 minutes if it is 0.
	WayOut time.Duration
	Events record.EventRecorder
	Clock  clock.PassiveClock

	// asks are questions to clusters, looks those to registries, and copies what is done with credentials.
	asks, looks, copies *operation.Runner

	verdicts *lru.Cache // edition → verdict

	memory memory
	writes fresh.Writes
	queue  atomic.Pointer[queue]
}

// queue is that of the controller's workers.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// visit is one reconcile of one object.
type visit struct {
	*Controller

	before *packagesv1.PackageBundleController
	object *packagesv1.PackageBundleController
}

// Reconcile makes one cluster's bundle as its PackageBundleController says, a step at a time.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v, err := c.open(ctx, request.NamespacedName)
	if v == nil || err != nil {
		return ctrl.Result{}, err
	}
	if c.writes.Stale(v.before) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	v.conclude()
	f, err := v.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	choice := decide(f)
	if choice.ends {
		return ctrl.Result{}, conflictsAside(v.finish(ctx, f, choice))
	}
	err = v.act(ctx, &f, choice)
	if choice.activate != "" {
		return ctrl.Result{}, err // a change of the spec is an event of its own
	}
	v.report(f, choice)
	if err := errors.Join(err, conflictsAside(v.write(ctx))); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: choice.after}, nil
}

// open reads the object. There is nothing to do for one that is gone or paused.
func (c *Controller) open(ctx context.Context, key client.ObjectKey) (*visit, error) {
	o := &packagesv1.PackageBundleController{}
	if err := c.Client.Get(ctx, key, o); err != nil {
		c.forget(key)
		return nil, client.IgnoreNotFound(err)
	}
	if annotations.HasPaused(o) {
		return nil, nil
	}
	return &visit{Controller: c, before: o, object: o.DeepCopy()}, nil
}

// forget leaves nothing behind of an object that is gone.
func (c *Controller) forget(key client.ObjectKey) {
	c.memory.forget(key)
	c.writes.Forget(key)
	for _, r := range []*operation.Runner{c.asks, c.looks, c.copies} {
		r.Take(key)
	}
}

func (v *visit) key() client.ObjectKey { return client.ObjectKeyFromObject(v.object) }

// conflictsAside leaves out what was changed meanwhile, which is an event of its own, or is gone.
func conflictsAside(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
