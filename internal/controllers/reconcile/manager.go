package reconcile

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is what a controller's workers take their requests from.
type Queue = priorityqueue.PriorityQueue[ctrlreconcile.Request]

// NewManager makes a manager that tracks the writes of its controllers, so that a Guard can hold
// back reconciles while the cache lags, and that holds writes back while it may not be the leader.
func NewManager(cfg *rest.Config, o ctrl.Options) (ctrl.Manager, error) {
	t := newTracker(o.Scheme)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(t.transport)
	if f := newFence(o); f != nil {
		cfg.Wrap(f.transport)
	}
	o.Cache.NewInformer = t.newInformer
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		return nil, err
	}
	t.http = mgr.GetHTTPClient()
	if err := mgr.Add(untilStopped(t.stopped)); err != nil {
		return nil, err
	}
	return &manager{Manager: mgr, tracker: t}, nil
}

// untilStopped closes a channel when the manager stops.
type untilStopped chan struct{}

// Start implements manager.Runnable.
func (c untilStopped) Start(ctx context.Context) error {
	<-ctx.Done()
	close(c)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (untilStopped) NeedLeaderElection() bool { return false }

// manager is a manager that has a tracker.
type manager struct {
	ctrl.Manager

	tracker *tracker
}

// Guard makes one controller read its own writes.
type Guard struct {
	name string
	log  logr.Logger
	// tracker is nil if the manager was not made by NewManager: then nothing is guarded.
	tracker *tracker
	writes  *ledger
}

// NewGuard returns the guard of a controller. The name is what the controller calls itself in logs
// and metrics: the kind that it reconciles, unless several controllers reconcile it.
func NewGuard(mgr ctrl.Manager, name string) *Guard {
	g := &Guard{name: name, log: mgr.GetLogger().WithValues("controller", name), writes: newLedger()}
	m, ok := mgr.(*manager)
	if !ok {
		g.log.Info("Not waiting for this controller's own writes: NewManager didn't create its manager")
		return g
	}
	g.tracker = m.tracker
	return g
}

// Options adds the guard to a controller's options.
func (g *Guard) Options(o controller.Options) controller.Options {
	if g.tracker == nil {
		return o
	}
	o.NewQueue = func(name string, _ workqueue.TypedRateLimiter[ctrlreconcile.Request]) workqueue.TypedRateLimitingInterface[ctrlreconcile.Request] {
		return g.Queue(NewQueue(name))
	}
	o.LogConstructor = g.logger
	return o
}

// Queue holds back requests of a queue until the cache has seen what their last reconcile wrote.
func (g *Guard) Queue(below Queue) Queue {
	if g.tracker == nil {
		return below
	}
	return &heldQueue{PriorityQueue: below, guard: g, held: heldBack.WithLabelValues(g.name)}
}

// Wrote reports whether this version of an object was written by the controller itself, so that
// its event is no news.
func (g *Guard) Wrote(o client.Object) bool {
	return o.GetResourceVersion() != "" && g.writes.wrote(client.ObjectKeyFromObject(o).String(), o.GetResourceVersion())
}

// logger makes the logger of one reconcile. It carries the request, because a logger is the only
// thing in the context of upstream's reconcilers that their options let us set.
func (g *Guard) logger(request *ctrlreconcile.Request) logr.Logger {
	if request == nil {
		return g.log
	}
	log := g.log.WithValues(g.name, klog.KRef(request.Namespace, request.Name))
	return log.WithSink(&originSink{LogSink: log.GetSink(), origin: origin{g.writes, *request}})
}

// origin is the reconcile that a write belongs to.
type origin struct {
	ledger  *ledger
	request ctrlreconcile.Request
}

// originOf returns the reconcile that a context belongs to.
func originOf(ctx context.Context) (origin, bool) {
	log, err := logr.FromContext(ctx)
	if err != nil {
		return origin{}, false
	}
	sink, ok := log.GetSink().(*originSink)
	if !ok {
		return origin{}, false
	}
	return sink.origin, true
}

// originSink passes an origin along to all loggers that are derived from it.
type originSink struct {
	logr.LogSink

	origin origin
}

// WithValues implements logr.LogSink.
func (s *originSink) WithValues(keysAndValues ...any) logr.LogSink {
	return &originSink{LogSink: s.LogSink.WithValues(keysAndValues...), origin: s.origin}
}

// WithName implements logr.LogSink.
func (s *originSink) WithName(name string) logr.LogSink {
	return &originSink{LogSink: s.LogSink.WithName(name), origin: s.origin}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s *originSink) WithCallDepth(depth int) logr.LogSink {
	if below, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return &originSink{LogSink: below.WithCallDepth(depth), origin: s.origin}
	}
	return s
}
