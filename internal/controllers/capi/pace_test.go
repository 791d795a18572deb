package capi

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// newPacedQueue allows a number of early reconciles.
func newPacedQueue(t *testing.T, early int) *pacedQueue {
	t.Helper()
	p := &pace{early: rate.NewLimiter(0, early)}
	p.newQueue(&reconcile.Guard{})(t.Name(), workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	q, ok := p.queue(t.Name()).(*pacedQueue)
	if !ok {
		t.Fatal("the queue is not known by its name")
	}
	t.Cleanup(q.ShutDown)
	return q
}

func named(name string) ctrlreconcile.Request {
	return ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: name}}
}

// look takes the next item, as a reconciler does.
func (q *pacedQueue) look(t *testing.T, want ctrlreconcile.Request) (waited time.Duration) {
	t.Helper()
	began := time.Now()
	got, shutdown := q.Get()
	if shutdown || got != want {
		t.Fatalf("got %v (%v), want %v", got, shutdown, want)
	}
	q.Done(got)
	return time.Since(began)
}

func TestOnlyTheFirstReconcilesAreEarly(t *testing.T) {
	q, one := newPacedQueue(t, 3), named("one")
	q.Add(one)
	q.look(t, one)
	for range 3 {
		q.Add(one)
		q.Add(one) // the same reconcile
		if took := q.look(t, one); took > paceInterval/2 {
			t.Errorf("an early look came after %s", took)
		}
	}
	q.Add(one)
	if took := q.look(t, one); took < paceInterval/2 {
		t.Errorf("when there are no early reconciles left, the next came after %s", took)
	}
}

func TestNewObjectsDoNotWait(t *testing.T) {
	q := newPacedQueue(t, 0)
	for _, name := range []string{"one", "two"} {
		q.Add(named(name))
		if took := q.look(t, named(name)); took > paceInterval/2 {
			t.Errorf("%s came after %s", name, took)
		}
	}
	now := time.Now()
	if wait := q.delay(named("two"), now.Add(2*paceInterval)); wait != 0 {
		t.Errorf("a while later it waits for %s", wait)
	}
	if wait := q.delay(named("two"), now); wait <= 0 || wait > paceInterval {
		t.Errorf("at once it waits for %s", wait)
	}
}

func TestOldEntriesAreForgotten(t *testing.T) {
	q := newPacedQueue(t, 0)
	now := time.Now()
	q.handedOut(named("old"), now)
	q.handedOut(named("new"), now.Add(2*time.Minute))
	if len(q.last) != 1 {
		t.Errorf("%d are remembered", len(q.last))
	}
}
