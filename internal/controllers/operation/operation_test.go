package operation_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/operation"
)

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "ns", Name: name} }

// gate is work that waits until it is released.
type gate struct {
	begun chan string
	open  chan struct{}
}

func newGate() *gate { return &gate{begun: make(chan string, 100), open: make(chan struct{})} }

func (g *gate) work(name, cluster string) operation.Work {
	return operation.Work{For: key(name), Cluster: key(cluster), Subject: name, Do: func(ctx context.Context) (any, error) {
		g.begun <- name
		select {
		case <-g.open:
			return name, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

func TestSilentClusterHoldsOnlyItsSlots(t *testing.T) {
	silent, quick := newGate(), newGate()
	ended := make(chan client.ObjectKey, 100)
	r := operation.New(t.Context(), operation.Limits{Total: 4, PerCluster: 2}, func(k client.ObjectKey) { ended <- k })
	for i := range 10 {
		r.Start(silent.work(fmt.Sprint("silent-", i), "silent"))
	}
	close(quick.open)
	for i := range 10 {
		r.Start(quick.work(fmt.Sprint("quick-", i), "quick"))
	}
	for range 10 {
		if k := <-ended; k.Name[:5] != "quick" {
			t.Errorf("%s ended, want only those of the quick cluster", k)
		}
	}
	if n := len(silent.begun); n != 2 {
		t.Errorf("%d operations run on the silent cluster, want 2", n)
	}
	close(silent.open)
	r.Wait()
}

func TestSlotsAreSharedFairly(t *testing.T) {
	g := newGate()
	r := operation.New(t.Context(), operation.Limits{Total: 1, PerCluster: 1}, func(client.ObjectKey) {})
	for _, name := range []string{"a1", "a2", "a3", "b1", "c1"} {
		r.Start(g.work(name, name[:1]))
	}
	var order []string
	for range 5 {
		order = append(order, <-g.begun)
		g.open <- struct{}{}
	}
	if diff := cmp.Diff([]string{"a1", "a2", "b1", "c1", "a3"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestOneOperationPerObjectUntilTaken(t *testing.T) {
	g := newGate()
	ended := make(chan client.ObjectKey, 1)
	r := operation.New(t.Context(), operation.Limits{Total: 2, PerCluster: 2}, func(k client.ObjectKey) { ended <- k })
	r.Start(g.work("one", "c"))
	if r.Start(g.work("one", "c")) {
		t.Error("a second operation began beside the first")
	}
	if subject, since := r.Running(key("one")); since.IsZero() || subject != "one" {
		t.Errorf("running = %q since %s", subject, since)
	}
	if _, ok := r.Take(key("one")); ok {
		t.Error("an outcome was taken before the end")
	}
	close(g.open)
	<-ended
	if r.Start(g.work("one", "c")) {
		t.Error("a second operation began before the outcome of the first was taken")
	}
	if o, ok := r.Take(key("one")); !ok || o.Value != "one" || o.Err != nil {
		t.Errorf("outcome = %+v, %t", o, ok)
	}
	if _, ok := r.Take(key("one")); ok {
		t.Error("an outcome was taken twice")
	}
}

func TestCancelEndsRunningAndWaitingOperations(t *testing.T) {
	g := newGate()
	ended := make(chan client.ObjectKey, 2)
	r := operation.New(t.Context(), operation.Limits{Total: 1, PerCluster: 1}, func(k client.ObjectKey) { ended <- k })
	r.Start(g.work("runs", "c"))
	r.Start(g.work("waits", "c"))
	<-g.begun
	r.Cancel(key("waits"))
	r.Cancel(key("runs"))
	for range 2 {
		k := <-ended
		if o, ok := r.Take(k); !ok || !errors.Is(o.Err, context.Canceled) {
			t.Errorf("outcome of %s = %+v, %t", k, o, ok)
		}
	}
	if len(g.begun) != 0 {
		t.Error("what was canceled while it waited has begun")
	}
}

func TestConcurrencyIsLimited(t *testing.T) {
	var now, most atomic.Int32
	var all sync.WaitGroup
	all.Add(200)
	r := operation.New(t.Context(), operation.Limits{Total: 5, PerCluster: 2}, func(client.ObjectKey) { all.Done() })
	for i := range 200 {
		r.Start(operation.Work{For: key(fmt.Sprint(i)), Cluster: key(fmt.Sprint(i % 7)), Do: func(context.Context) (any, error) {
			n := now.Add(1)
			for m := most.Load(); n > m; m = most.Load() {
				if most.CompareAndSwap(m, n) {
					break
				}
			}
			now.Add(-1)
			return nil, nil
		}})
	}
	all.Wait()
	if n := most.Load(); n > 5 {
		t.Errorf("%d ran at once, want 5 at most", n)
	}
}
