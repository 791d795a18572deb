package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/service"
)

// startTime is ample for a process to exit.
const startTime = 10 * time.Second

func checkRemoved(t *testing.T, h metal.Home) {
	t.Helper()
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	if n := metals(t, h); n != 0 {
		t.Errorf("%d metals serve", n)
	}
}

func TestPurgeRemovesEverything(t *testing.T) {
	h := newHome(t)
	if err := service.Purge(t.Context(), h); err != nil {
		t.Errorf("purging nothing: %v", err)
	}
	for name, before := range map[string]func(){
		"a metal that runs": func() {},
		"a metal that is stopped": func() {
			if _, err := service.Stop(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		},
		"a home that lost its endpoint": func() {
			if _, err := service.Stop(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(h.EndpointFile()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ensure(t, h)
			for _, device := range []string{"node-1", "node-2", "node-3"} {
				addDevice(t, h, device)
			}
			before()
			if err := service.Purge(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			checkRemoved(t, h)
		})
	}
}

// TestPurgeKeepsTheHomeOfAServiceThatDidNotCleanUp lets the service fail after its machines are
// deleted. A bridge that it left could not be found without the home.
func TestPurgeKeepsTheHomeOfAServiceThatDidNotCleanUp(t *testing.T) {
	h := newHome(t)
	ensure(t, h)
	if _, err := service.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fail")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(failOnce, file)
	if err := service.Purge(t.Context(), h); err == nil || !strings.Contains(err.Error(), "failed to clean up") {
		t.Errorf("got error %v, want one about the service that failed", err)
	}
	if h.LastDriver() != driver {
		t.Errorf("the home was removed: a repeated purge can't find driver %q", driver)
	}
	if err := service.Purge(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	checkRemoved(t, h)
}

func TestPurgeKeepsForeignFiles(t *testing.T) {
	h := newHome(t)
	ensure(t, h)
	thesis := filepath.Join(h.Dir, "thesis.tex")
	if err := os.WriteFile(thesis, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := service.Purge(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(h.Dir)
	if err != nil || len(left) != 1 || left[0].Name() != "thesis.tex" {
		t.Errorf("got files %v, error %v, want only thesis.tex", left, err)
	}
	if err := os.Remove(thesis); err != nil {
		t.Fatal(err)
	}
}

// TestConcurrentPurgeAndStart checks that either of them wins completely.
func TestConcurrentPurgeAndStart(t *testing.T) {
	h := newHome(t)
	ensure(t, h)
	addDevice(t, h, "node-1")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := service.Purge(t.Context(), h); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := service.Ensure(t.Context(), h, driver); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := metals(t, h); n > 1 {
		t.Errorf("%d metals serve", n)
	}
	ensure(t, h)
	if err := service.Purge(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	checkRemoved(t, h)
}

// TestKilledPurgeIsResumed kills the command at moments from start to end.
func TestKilledPurgeIsResumed(t *testing.T) {
	h := newHome(t)
	for after := 20 * time.Millisecond; after < time.Second; after *= 2 {
		ensure(t, h)
		addDevice(t, h, "node-1")
		addDevice(t, h, "node-2")
		cmd := drover(h, "metal", "purge", "--yes")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := service.Purge(t.Context(), h); err != nil {
			t.Fatalf("after a purge that was killed after %s: %v", after, err)
		}
		checkRemoved(t, h)
	}
}
