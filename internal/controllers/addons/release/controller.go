package release

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// Controller reconciles HelmReleaseProxies.
type Controller struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Values reads ConfigMaps and Secrets.
	Values *sources.Reader
	// Policy decides what releases may use.
	Policy *delegation.Policy
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
	queue       atomic.Pointer[queue]
}

// queue is that of the controller's workers.
type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

// Reconcile brings one release closer to its spec. A no-op makes no request and copies the object
// once.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v, err := c.open(ctx, request.NamespacedName)
	if v == nil || err != nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, v, []reconcile.Step[*visit]{
		step("preparing the release", (*visit).prepare),
		step("recording the last operation", (*visit).conclude),
		step("gathering facts", (*visit).gather),
		step("starting an operation", (*visit).act),
		step("writing the status", (*visit).report),
	})
	return reconcile.Result(err, v.next)
}

// step makes a method of visit a step.
func step(doing string, run func(*visit, context.Context) error) reconcile.Step[*visit] {
	return reconcile.Step[*visit]{Doing: doing, Run: func(ctx context.Context, v *visit) error { return run(v, ctx) }}
}

// visit is one reconcile of one object.
//
// It writes without an optimistic lock: the outcome of an operation is known only once and must not
// be lost to a concurrent change of the spec.
type visit struct {
	*Controller

	// before is the object of the cache, or as last written. It is never modified.
	before  *addonsv1.HelmReleaseProxy
	release *addonsv1.HelmReleaseProxy
	tool    tool.Tool

	// concluded reports that an operation has ended since the last reconcile.
	concluded bool
	facts     facts
	choice    choice
	// next is when to reconcile again if nothing happens, or 0.
	next time.Duration
}

// open returns nil if there is nothing to do.
func (c *Controller) open(ctx context.Context, key client.ObjectKey) (*visit, error) {
	release := &addonsv1.HelmReleaseProxy{}
	if err := c.Client.Get(ctx, key, release, client.UnsafeDisableDeepCopy); err != nil {
		c.forget(key)
		return nil, client.IgnoreNotFound(err)
	}
	if paused(release) {
		return nil, nil // resuming is an event
	}
	name := cmp.Or(release.Spec.Tool, addonsv1.Helm)
	t := c.Tools[name]
	if t == nil {
		return nil, fmt.Errorf("unknown tool %q", name)
	}
	return &visit{Controller: c, before: release, release: release.DeepCopy(), tool: t}, nil
}

func (c *Controller) forget(key client.ObjectKey) {
	c.memory.forget(key)
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
