package capi

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const (
	// paceInterval is the least time between two reconciles of an object when many are busy.
	paceInterval = time.Second
	// earlyRate is how many reconciles per second may come earlier than that, of all objects and
	// reconcilers together, and earlyBurst how many at once. A new cluster takes about fifty.
	earlyRate, earlyBurst = 20, 100
)

// pace limits how often reconcilers visit an object. A new cluster is a chain of objects that wait
// for one another, and each link is reconciled several times within milliseconds. That makes one
// cluster fast and a hundred at once slow: they gain from changes that are handled together. So a
// few early reconciles are free, and the others wait until paceInterval has passed.
//
// Upstream's own limit, ReconcilerRateLimiting, knows the second case only.
type pace struct {
	early *rate.Limiter
	// queues are those of reconcilers that have started, by name.
	queues sync.Map
}

// queue is what reconcilers take their work from.
type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

func newPace() *pace { return &pace{early: rate.NewLimiter(earlyRate, earlyBurst)} }

// newQueue makes queues for controller.Options.
func (p *pace) newQueue(guard *reconcile.Guard) func(string, workqueue.TypedRateLimiter[ctrlreconcile.Request]) queue {
	return func(name string, limiter workqueue.TypedRateLimiter[ctrlreconcile.Request]) queue {
		below := priorityqueue.New(name, func(o *priorityqueue.Opts[ctrlreconcile.Request]) { o.RateLimiter = limiter })
		q := &pacedQueue{
			PriorityQueue: guard.Queue(below), pace: p,
			last: map[ctrlreconcile.Request]time.Time{}, pending: map[ctrlreconcile.Request]bool{},
			polled: map[ctrlreconcile.Request]polling{},
		}
		p.queues.Store(name, q)
		return q
	}
}

// queue is that of a reconciler; nil if it has not started.
func (p *pace) queue(name string) queue {
	q, ok := p.queues.Load(name)
	if !ok {
		return nil
	}
	return q.(*pacedQueue)
}

// pacedQueue delays requests that were handed out a moment ago.
type pacedQueue struct {
	priorityqueue.PriorityQueue[ctrlreconcile.Request]

	pace *pace

	mu sync.Mutex
	// last is when a request was handed out last.
	last map[ctrlreconcile.Request]time.Time
	// pending has the requests that will be handed out early.
	pending map[ctrlreconcile.Request]bool
	// polled has the requests that a reconciler polls.
	polled map[ctrlreconcile.Request]polling
	pruned time.Time
}

// Add implements workqueue.TypedInterface.
func (q *pacedQueue) Add(item ctrlreconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue. Retries after an error keep their own rate.
func (q *pacedQueue) AddWithOpts(o priorityqueue.AddOpts, items ...ctrlreconcile.Request) {
	if o.RateLimited {
		q.PriorityQueue.AddWithOpts(o, items...)
		return
	}
	interval := o.After
	for _, item := range items {
		if interval > 0 {
			o.After = q.sooner(item, interval, time.Now())
		} else {
			o.After = q.delay(item, time.Now())
		}
		q.PriorityQueue.AddWithOpts(o, item)
	}
}

// delay is how long to wait before a request is handed out.
func (q *pacedQueue) delay(item ctrlreconcile.Request, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, known := q.last[item]
	rest := paceInterval - now.Sub(last)
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
func (q *pacedQueue) Get() (item ctrlreconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *pacedQueue) GetWithPriority() (item ctrlreconcile.Request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.handedOut(item, time.Now())
	}
	return item, priority, shutdown
}

func (q *pacedQueue) handedOut(item ctrlreconcile.Request, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pending, item)
	q.last[item] = now
	if now.Sub(q.pruned) > time.Minute {
		q.pruned = now
		q.forgetPolled(now)
		maps.DeleteFunc(q.last, func(_ ctrlreconcile.Request, last time.Time) bool { return now.Sub(last) > paceInterval })
	}
}
