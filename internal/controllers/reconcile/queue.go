package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// holdInterval is how often a request that is held back is checked again. The event that ends the
// wait usually triggers a reconcile anyway.
const holdInterval = 50 * time.Millisecond

var heldBack = newHeldBack()

func newHeldBack() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drover_reconciles_held_back_total",
		Help: "Reconciles that waited because the cache had not seen the controller's last write.",
	}, []string{"controller"})
	metrics.Registry.MustRegister(c)
	return c
}

// heldQueue hands out a request only when the cache has seen what its last reconcile wrote. It
// never gives up: a reconcile that starts from old facts creates things twice.
type heldQueue struct {
	priorityqueue.PriorityQueue[ctrlreconcile.Request]

	guard *Guard
	held  prometheus.Counter
}

// Get implements workqueue.TypedInterface.
func (q *heldQueue) Get() (item ctrlreconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *heldQueue) GetWithPriority() (item ctrlreconcile.Request, priority int, shutdown bool) {
	for {
		item, priority, shutdown = q.PriorityQueue.GetWithPriority()
		if shutdown || q.guard.writes.seen(item, q.guard.tracker) {
			return item, priority, shutdown
		}
		if q.guard.writes.startHolding(item) {
			q.held.Inc()
		}
		q.Done(item)
		again := priority // the queue keeps the pointer
		q.AddWithOpts(priorityqueue.AddOpts{After: holdInterval, Priority: &again}, item)
	}
}
