package capi

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// lookInterval is how often an object is looked at by one reconciler, if many are.
	lookInterval = time.Second
	// earlyLooks is how many looks in a second may come earlier than that, of all objects and reconcilers together, and earlyBurst how many at
	// once. A new cluster takes about fifty.
	earlyLooks, earlyBurst = 20, 100
)

// pace is how fast reconcilers look at objects. A new cluster is a chain of objects that wait for one another, and each link is looked at
// several times within milliseconds. That is what makes one cluster fast and a hundred at once slow: they have more to gain from changes
// that are looked at together. So there are early looks for a few, and the others wait for lookInterval to pass.
//
// Upstream's own limit, ReconcilerRateLimiting, knows the second case only.
type pace struct {
	early *rate.Limiter
	// queues are those of reconcilers that have started, by name.
	queues sync.Map
}

// queue is what reconcilers take their work from.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func newPace() *pace { return &pace{early: rate.NewLimiter(earlyLooks, earlyBurst)} }

// newQueue is for controller.Options.
func (p *pace) newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
	below := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	q := &pacedQueue{PriorityQueue: below, pace: p, looked: map[reconcile.Request]time.Time{}, pending: map[reconcile.Request]bool{}}
	p.queues.Store(name, q)
	return q
}

// queue is that of a reconciler; nil if it has not started.
func (p *pace) queue(name string) queue {
	q, ok := p.queues.Load(name)
	if !ok {
		return nil
	}
	return q.(*pacedQueue)
}

// pacedQueue holds back what was given out a moment ago.
type pacedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	pace *pace

	mu sync.Mutex
	// looked is when an object was given out last.
	looked map[reconcile.Request]time.Time
	// pending are those that will be given out early.
	pending map[reconcile.Request]bool
	pruned  time.Time
}

// Add implements workqueue.TypedInterface.
func (q *pacedQueue) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue. Who says when to look knows best.
func (q *pacedQueue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if o.After > 0 || o.RateLimited {
		q.PriorityQueue.AddWithOpts(o, items...)
		return
	}
	for _, item := range items {
		o.After = q.wait(item, time.Now())
		q.PriorityQueue.AddWithOpts(o, item)
	}
}

// wait is how long to hold an object back.
func (q *pacedQueue) wait(item reconcile.Request, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, known := q.looked[item]
	rest := lookInterval - now.Sub(last)
	switch {
	case !known || rest <= 0 || q.pending[item]:
		return 0
	case q.pace.early.AllowN(now, 1):
		q.pending[item] = true
		return 0
	}
	return rest
}

// Get implements workqueue.TypedInterface.
func (q *pacedQueue) Get() (item reconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *pacedQueue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.given(item, time.Now())
	}
	return item, priority, shutdown
}

func (q *pacedQueue) given(item reconcile.Request, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pending, item)
	q.looked[item] = now
	if now.Sub(q.pruned) > time.Minute {
		q.pruned = now
		maps.DeleteFunc(q.looked, func(_ reconcile.Request, last time.Time) bool { return now.Sub(last) > lookInterval })
	}
}
