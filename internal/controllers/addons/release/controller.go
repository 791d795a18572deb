package release

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/fresh"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// Controller reconciles HelmReleaseProxies.
type Controller struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Values reads ConfigMaps and Secrets.
	Values *sources.Reader
	// Packages finds the version of a chart.
	Packages Resolver
	// Tools by their names in the API.
	Tools    map[addonsv1.Tool]tool.Tool
	Clusters *workload.Clusters
	// Limits bound the operations at a time.
	Limits      operation.Limits
	Events      record.EventRecorder
	Clock       clock.PassiveClock
	WatchFilter string
	// ResolveEvery is how often a version that may move is looked up.
	ResolveEvery time.Duration

	operations  *operation.Runner
	resolutions *resolutions
	memory      memory
	writes      fresh.Writes
	queue       atomic.Pointer[queue]
}

// queue is that of the controller's workers.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Reconcile makes one release as its HelmReleaseProxy says, a step at a time.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v, err := c.open(ctx, request.NamespacedName)
	if v == nil || err != nil {
		return ctrl.Result{}, err
	}
	if c.writes.Stale(v.release) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	if v.paused() {
		return ctrl.Result{}, nil
	}
	if err := v.prepare(ctx); err != nil {
		return ctrl.Result{}, err
	}
	concluded := v.conclude()
	facts := v.gather(ctx)
	choice := decide(facts)
	if err := v.act(ctx, facts, choice); err != nil {
		return ctrl.Result{}, err
	}
	if choice.do == finish {
		return ctrl.Result{}, v.finish(ctx)
	}
	if choice.passing(facts) && !concluded {
		return ctrl.Result{RequeueAfter: sooner(choice.after, patience)}, nil
	}
	v.report(facts, choice)
	return ctrl.Result{RequeueAfter: choice.after}, v.write(ctx)
}

// visit is one reconcile of one object.
type visit struct {
	*Controller

	// before is the cache's, or what was last written. It is never changed.
	before  *addonsv1.HelmReleaseProxy
	release *addonsv1.HelmReleaseProxy
	tool    tool.Tool
}

func (c *Controller) open(ctx context.Context, key client.ObjectKey) (*visit, error) {
	release := &addonsv1.HelmReleaseProxy{}
	if err := c.Client.Get(ctx, key, release, client.UnsafeDisableDeepCopy); err != nil {
		c.forget(key)
		return nil, client.IgnoreNotFound(err)
	}
	name := release.Spec.Tool
	if name == "" {
		name = addonsv1.Helm
	}
	t := c.Tools[name]
	if t == nil {
		return nil, fmt.Errorf("unknown tool %q", name)
	}
	return &visit{Controller: c, before: release, release: release.DeepCopy(), tool: t}, nil
}

func (c *Controller) forget(key client.ObjectKey) {
	c.memory.forget(key)
	c.writes.Forget(key)
}

func (v *visit) key() client.ObjectKey { return client.ObjectKeyFromObject(v.release) }

func (v *visit) deleting() bool { return !v.release.DeletionTimestamp.IsZero() }

// cluster is where the release goes.
func (v *visit) cluster() client.ObjectKey {
	ref := v.release.Spec.ClusterRef
	if ref.Namespace == "" {
		ref.Namespace = v.release.Namespace
	}
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
}

func (v *visit) id() tool.ID { return tool.IDOf(v.release) }
