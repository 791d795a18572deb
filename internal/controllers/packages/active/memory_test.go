package active

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestLostCopiesAreWrittenAgain(t *testing.T) {
	var m memory
	key, a, b := client.ObjectKey{Name: "dev"}, secretKey{"ns", "a"}, secretKey{"ns", "b"}
	m.lost(key, a) // of a cluster that nothing is known about
	m.Update(key, func(k *knowledge) {
		k.copied.written = map[secretKey]writtenCopy{a: {stamp: "1"}, b: {stamp: "2"}}
	})
	before := m.Get(key).copied.written
	m.lost(key, a)
	if now := m.Get(key).copied.written; len(now) != 1 || now[b].stamp != "2" {
		t.Errorf("written %v, want only %v", now, b)
	}
	if len(before) != 2 {
		t.Errorf("what a reconcile is reading changed to %v", before)
	}
}

func TestWaitingForABundle(t *testing.T) {
	var m memory
	latest, current, other := client.ObjectKey{Name: "latest"}, client.ObjectKey{Name: "current"}, client.ObjectKey{Name: "other"}
	m.Update(latest, func(k *knowledge) { k.latestCheck.name = "v1-36-1" })
	m.Update(current, func(k *knowledge) { k.activeCheck.name = "v1-36-1" })
	m.Update(other, func(k *knowledge) { k.latestCheck.name = "v1-36-2" })
	found := map[client.ObjectKey]bool{}
	for _, key := range m.waiting("v1-36-1") {
		found[key] = true
	}
	if len(found) != 2 || !found[latest] || !found[current] {
		t.Errorf("waiting are %v", found)
	}
	if got := m.waiting("v1-36-3"); got != nil {
		t.Errorf("waiting for an unknown bundle are %v", got)
	}
}

func TestOlderVersion(t *testing.T) {
	for _, tt := range []struct {
		version, other string
		want           bool
	}{
		{"1", "2", true}, {"9", "10", true}, {"2", "1", false}, {"1", "1", false}, {"", "1", false}, {"1", "", false}, {"x", "1", false},
	} {
		if got := olderVersion(tt.version, tt.other); got != tt.want {
			t.Errorf("%q is older than %q: %t", tt.version, tt.other, got)
		}
	}
}
