package e2e

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestInterruptedFirstStartCanBeRepeated interrupts and kills first starts on one home, starts the
// plane from several terminals at once, and checks that what it then acknowledges is safe.
func TestInterruptedFirstStartCanBeRepeated(t *testing.T) {
	t.Parallel()
	newPlane(t).follow(
		step{"an interrupted start stops its processes", testInterruptedStart},
		step{"a start can be killed at any time", testKilledStart},
		step{"concurrent starts make one plane", testConcurrentStarts},
		step{"acknowledged writes survive kills", testWriteStorm},
	)
}

func testInterruptedStart(t *testing.T, p *plane) {
	cmd := p.command("up")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.await("etcd runs", func() bool { return len(processes(p.home)) >= 3 })
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted up ends well")
	}
	if left := processes(p.home); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func testKilledStart(t *testing.T, p *plane) {
	for _, after := range []int{30, 300, 1500, 4000} {
		cmd := p.command("up", "--foreground")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(after) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func testConcurrentStarts(t *testing.T, p *plane) {
	var results [3]result
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = p.drover("up") })
	}
	wg.Wait()
	made := 0
	for _, r := range results {
		if r.code != 0 {
			t.Errorf("one of them ended with %d:\n%s", r.code, r.stderr)
		}
		if strings.Contains(r.stderr, "is ready after") {
			made++
		}
	}
	if made != 1 || len(processes(p.home)) != 5 {
		t.Errorf("%d of them made a plane, and %d processes run; want 1 and 5", made, len(processes(p.home)))
	}
	keep(t, p, "late", func() {})
}
