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
	// paceInterval is the minimum time between two reconciles of an object under load.
	paceInterval = time.Second
	// earlyRate is the number of reconciles per second that may run earlier, of all objects and
	// reconcilers together, and earlyBurst the number at once. A new cluster takes about fifty.
	earlyRate, earlyBurst = 20, 100
)

// pace limits how often reconcilers visit an object. A new cluster is a chain of objects that wait
// for each other, and each is reconciled several times within milliseconds. That makes one cluster
// fast but a hundred concurrent ones slow, which benefit from handling changes together. So a
// limited number of early reconciles run at once, and the others wait until paceInterval has
// passed.
//
// Upstream's own limit, ReconcilerRateLimiting, covers only the second case.
type pace struct {
	early *rate.Limiter
	// queues are the queues of started reconcilers, by name.
	queues sync.Map
}

// queue is what reconcilers take their work from.
type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

func newPace() *pace { return &pace{early: rate.NewLimiter(earlyRate, earlyBurst)} }

// newQueue implements NewQueue of controller.Options.
func (p *pace) newQueue(guard *reconcile.Guard) func(string, workqueue.TypedRateLimiter[ctrlreconcile.Request]) queue {
	return func(name string, _ workqueue.TypedRateLimiter[ctrlreconcile.Request]) queue {
		q := &pacedQueue{
			PriorityQueue: guard.Queue(reconcile.NewQueue(name)), pace: p,
			last: map[ctrlreconcile.Request]time.Time{}, pending: map[ctrlreconcile.Request]bool{},
			polled: map[ctrlreconcile.Request]polling{},
		}
		p.queues.Store(name, q)
		return q
	}
}

// queue returns the queue of a reconciler, or nil if it has not started.
func (p *pace) queue(name string) queue {
	q, ok := p.queues.Load(name)
	if !ok {
		return nil
	}
	return q.(*pacedQueue)
}

// pacedQueue delays requests that were handed out recently.
type pacedQueue struct {
	priorityqueue.PriorityQueue[ctrlreconcile.Request]

	pace *pace

	mu sync.Mutex
	// last is when each request was last handed out.
	last map[ctrlreconcile.Request]time.Time
	// pending contains the requests that will be handed out early.
	pending map[ctrlreconcile.Request]bool
	// polled contains the requests that a reconciler polls.
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

// delay returns how long to delay a request.
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
