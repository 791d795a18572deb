package e2e

import (
	"sync"
	"testing"
)

// TestTwoPlanes starts two planes concurrently with one metal home, and moves a cluster from one to
// the other.
func TestTwoPlanes(t *testing.T) {
	t.Parallel()
	one := withMetal(t, newPlane(t))
	other := newPlane(t).with("DROVER_METAL_HOME=" + one.metalHome())
	if t.Run("concurrent starts start one metal", func(t *testing.T) { testOneMetal(t, one.in(t), other.in(t)) }) {
		t.Run("a cluster moves and its machines do not notice", func(t *testing.T) { testMove(t, one.in(t), other.in(t)) })
	}
}

func testOneMetal(t *testing.T, planes ...*plane) {
	results := make([]result, len(planes))
	var wg sync.WaitGroup
	for i, p := range planes {
		wg.Go(func() { results[i] = p.drover("up", "--metal", "memory") })
	}
	wg.Wait()
	for _, r := range results {
		if r.code != 0 {
			t.Errorf("one of them ended with %d:\n%s", r.code, r.stderr)
		}
	}
	if n := planes[0].metals(); len(n) != 1 {
		t.Errorf("metals %v run, want one", n)
	}
	a, b := planes[0].metalStatus().PacketAPI, planes[1].metalStatus().PacketAPI
	if a == "" || a != b {
		t.Errorf("one plane uses %q, the other %q", a, b)
	}
}
