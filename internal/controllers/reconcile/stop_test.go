package reconcile

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(n int) ctrlreconcile.Request {
	return ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(n)}}
}

// work takes requests until the queue is shut down.
func work(q Queue, took func(ctrlreconcile.Request)) {
	for {
		item, shutdown := q.Get()
		if shutdown {
			return
		}
		took(item)
		q.Done(item)
	}
}

func TestControllersWithoutAGuardHaveAStoppableQueue(t *testing.T) {
	o := WithQueue(controller.Options{MaxConcurrentReconciles: 3})
	q := o.NewQueue(t.Name(), nil)
	defer q.ShutDown()
	if _, ok := q.(*stoppableQueue); !ok || o.MaxConcurrentReconciles != 3 {
		t.Errorf("got queue %T and %d workers, want *stoppableQueue and 3", q, o.MaxConcurrentReconciles)
	}
}

func TestWorkersEndWhenABusyQueueIsShutDown(t *testing.T) {
	const rounds, workers, items = 300, 4, 200
	for round := range rounds {
		q := NewQueue(t.Name())
		var group sync.WaitGroup
		for range workers {
			group.Go(func() { work(q, func(ctrlreconcile.Request) {}) })
		}
		group.Go(func() {
			for n := range items {
				q.Add(request(n))
			}
		})
		group.Go(q.ShutDown)
		ended := make(chan struct{})
		go func() { group.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("round %d: workers hang", round)
		}
	}
}

func TestQueueHandsOutRequestsUntilItIsShutDown(t *testing.T) {
	q := NewQueue(t.Name())
	taken := make(chan ctrlreconcile.Request)
	var group sync.WaitGroup
	group.Go(func() { work(q, func(r ctrlreconcile.Request) { taken <- r }) })
	for n := range 10 {
		q.Add(request(n))
		if got := <-taken; got != request(n) {
			t.Errorf("got %s, want %d", got, n)
		}
	}
	if q.ShuttingDown() {
		t.Error("the queue shuts down by itself")
	}
	q.ShutDownWithDrain()
	q.ShutDown() // a second time is not an error
	group.Wait()
	if _, shutdown := q.Get(); !shutdown || !q.ShuttingDown() {
		t.Error("the queue is not shut down")
	}
}
