package reconcile

import (
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMemory(t *testing.T) {
	type facts struct{ count int }
	a, b := client.ObjectKey{Name: "a"}, client.ObjectKey{Name: "b"}
	increment := func(f *facts) { f.count++ }
	var m Memory[facts]
	if got := m.Get(a); got != (facts{}) {
		t.Errorf("an empty memory knows %+v", got)
	}
	m.UpdateKnown(a, increment)
	m.Forget(a)
	if keys := m.Keys(func(*facts) bool { return true }); keys != nil {
		t.Errorf("an empty memory has keys %v", keys)
	}
	m.Update(a, increment)
	m.UpdateKnown(a, increment)
	m.UpdateKnown(b, increment)
	if m.Get(a).count != 2 || m.Get(b).count != 0 {
		t.Errorf("counts %d and %d, want 2 and 0", m.Get(a).count, m.Get(b).count)
	}
	m.Update(b, increment)
	if keys := m.Keys(func(f *facts) bool { return f.count == 1 }); len(keys) != 1 || keys[0] != b {
		t.Errorf("keys %v, want %v", keys, b)
	}
	m.Forget(a)
	if m.Get(a).count != 0 || m.Get(b).count != 1 {
		t.Errorf("counts %d and %d after forgetting one", m.Get(a).count, m.Get(b).count)
	}
}

func TestMemoryIsSafeForConcurrentUse(t *testing.T) {
	var m Memory[int]
	var all sync.WaitGroup
	key := client.ObjectKey{Name: "a"}
	for range 50 {
		all.Go(func() { m.Update(key, func(n *int) { *n++ }) })
		all.Go(func() { m.Get(key) })
	}
	all.Wait()
	if got := m.Get(key); got != 50 {
		t.Errorf("%d updates, want 50", got)
	}
}
