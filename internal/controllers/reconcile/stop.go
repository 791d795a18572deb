package reconcile

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue returns a priority queue that repeats failed reconciles as retries says, and whose
// workers always end when it is shut down.
//
// Upstream's queue hands a request to a waiting worker while it holds its locks. If the worker
// leaves at that moment because the queue is shut down, nothing ever takes the request or releases
// the locks, and every other worker hangs until the manager gives up on it. So the workers that
// wait leave first, each with a request of its own, and the queue is shut down without any.
func NewQueue(name string) Queue {
	return &stoppableQueue{PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[ctrlreconcile.Request]) { o.RateLimiter = retries() })}
}

// WithQueue makes a controller without a Guard use NewQueue.
func WithQueue(o controller.Options) controller.Options {
	o.NewQueue = func(name string, _ workqueue.TypedRateLimiter[ctrlreconcile.Request]) workqueue.TypedRateLimitingInterface[ctrlreconcile.Request] {
		return NewQueue(name)
	}
	return o
}

type stoppableQueue struct {
	priorityqueue.PriorityQueue[ctrlreconcile.Request]

	once     sync.Once
	stopping atomic.Bool
	// waiting is the number of workers that wait for a request, or are about to.
	waiting atomic.Int64
}

// Get implements workqueue.TypedInterface.
func (q *stoppableQueue) Get() (item ctrlreconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *stoppableQueue) GetWithPriority() (item ctrlreconcile.Request, priority int, shutdown bool) {
	q.waiting.Add(1) // before stopping is read: either ShutDown waits for this worker, or the worker leaves
	defer q.waiting.Add(-1)
	if q.stopping.Load() {
		return ctrlreconcile.Request{}, 0, true
	}
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	return item, priority, shutdown || q.stopping.Load()
}

// ShuttingDown implements workqueue.TypedInterface.
func (q *stoppableQueue) ShuttingDown() bool { return q.stopping.Load() }

// ShutDown implements workqueue.TypedInterface.
func (q *stoppableQueue) ShutDown() {
	q.once.Do(func() {
		q.stopping.Store(true)
		q.wake()
		q.PriorityQueue.ShutDown()
	})
}

// ShutDownWithDrain implements workqueue.TypedInterface. Upstream's queue drains nothing either.
func (q *stoppableQueue) ShutDownWithDrain() { q.ShutDown() }

// wake adds requests until no worker waits. No two have the same name, since a request is handed
// out once until it is done.
func (q *stoppableQueue) wake() {
	const interval = time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n := 0; q.waiting.Load() > 0; n++ {
		q.Add(ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: "stop-" + strconv.Itoa(n)}})
		<-tick.C
	}
}
