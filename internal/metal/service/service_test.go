package service_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/service"
)

func TestRunningMetalIsReused(t *testing.T) {
	h := newHome(t)
	first := ensure(t, h)
	if again := ensure(t, h); !cmp.Equal(first, again) {
		t.Errorf("a second start changed the endpoint:\n%s", cmp.Diff(first, again))
	}
	if n := metals(t, h); n != 1 {
		t.Errorf("%d metals serve, want 1", n)
	}
}

func TestAddressAndTokensSurviveRestarts(t *testing.T) {
	h := newHome(t)
	before := ensure(t, h)
	token, err := h.Token(before.Project)
	if err != nil {
		t.Fatal(err)
	}
	addDevice(t, h, "node-1")
	for name, end := range map[string]func(){
		"stopped": func() {
			if was, err := service.Stop(t.Context(), h); err != nil || !was {
				t.Fatalf("stopping: %v %v", was, err)
			}
		},
		"killed": func() {
			e, err := h.ReadEndpoint()
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Kill(startTime); err != nil {
				t.Fatal(err)
			}
		},
	} {
		end()
		if _, ok := service.Running(t.Context(), h); ok {
			t.Fatalf("%s: it still runs", name)
		}
		after := ensure(t, h)
		again, err := h.Token(after.Project)
		if err != nil || after.URL != before.URL || after.Project != before.Project || again != token {
			t.Errorf("%s: endpoint %+v became %+v, the token is the same: %v (%v)", name, before, after, again == token, err)
		}
		c, err := admin.Open(h)
		if err != nil {
			t.Fatal(err)
		}
		if devices, err := c.Devices(t.Context(), nil); err != nil || len(devices) != 1 {
			t.Errorf("%s: %d devices are there, want 1 (%v)", name, len(devices), err)
		}
	}
}

// TestServiceWithoutTLSIsReplaced upgrades a service that machines reach without TLS: such a
// service runs until somebody stops it.
func TestServiceWithoutTLSIsReplaced(t *testing.T) {
	h := newHome(t)
	old := ensure(t, h)
	old.Machines = "http://198.18.0.1:1"
	if err := h.WriteEndpoint(old); err != nil {
		t.Fatal(err)
	}
	addDevice(t, h, "node-1")
	now := ensure(t, h)
	if now.PID == old.PID || now.Outdated() || now.URL != old.URL {
		t.Errorf("the service is %+v, it was %+v", now, old)
	}
	c, err := admin.Open(h)
	if err != nil {
		t.Fatal(err)
	}
	if devices, err := c.Devices(t.Context(), nil); err != nil || len(devices) != 1 {
		t.Errorf("%d devices are there, want 1 (%v)", len(devices), err)
	}
	if again := ensure(t, h); again.PID != now.PID {
		t.Error("a service with TLS is replaced, too")
	}
}

func TestConcurrentStartsStartOneMetal(t *testing.T) {
	h := newHome(t)
	endpoints := make([]metal.Endpoint, 8)
	var wg sync.WaitGroup
	for i := range endpoints {
		wg.Go(func() {
			var err error
			if endpoints[i], err = service.Ensure(t.Context(), h, driver); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range endpoints[1:] {
		if !cmp.Equal(e, endpoints[0]) {
			t.Errorf("two of them differ:\n%s", cmp.Diff(endpoints[0], e))
		}
	}
	if n := metals(t, h); n != 1 {
		t.Errorf("%d metals serve, want 1", n)
	}
}

func TestAnotherDriverIsRejected(t *testing.T) {
	h := newHome(t)
	ensure(t, h)
	refused := func(when string) {
		_, err := service.Ensure(t.Context(), h, "local")
		var other *metal.DriverError
		if !errors.As(err, &other) || other.Has != driver || other.Wanted != "local" {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("while it runs")
	if _, err := service.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	refused("after it ran")
}

func TestStoppingLeavesNoProcess(t *testing.T) {
	h := newHome(t)
	if was, err := service.Stop(t.Context(), h); was || err != nil {
		t.Errorf("stopping nothing: %v %v", was, err)
	}
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("stopping nothing made a home: %v", err)
	}
	e := ensure(t, h)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := service.Stop(t.Context(), h); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if e.Alive() || metals(t, h) != 0 {
		t.Errorf("metal lives on: %v, %d", e.Alive(), metals(t, h))
	}
}

func TestFailedStartReportsTheCause(t *testing.T) {
	h := newHome(t)
	if err := os.MkdirAll(h.Dir+"/store.db", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := service.Ensure(t.Context(), h, driver)
	if err == nil || !strings.Contains(err.Error(), "its log "+h.LogFile()+" ends with") || !strings.Contains(err.Error(), "store.db") {
		t.Errorf("got error %v, want one that contains %q and %q", err, "its log "+h.LogFile()+" ends with", "store.db")
	}
	if n := metals(t, h); n != 0 {
		t.Errorf("%d metals serve", n)
	}
}

// TestInterruptedStartLeavesNoProcess delays the service by locking its store.
func TestInterruptedStartLeavesNoProcess(t *testing.T) {
	h := newHome(t)
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := os.Create(h.Dir + "/store.db")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := syscall.Flock(int(store.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := service.Ensure(ctx, h, driver)
		done <- err
	}()
	await(t, "metal starts", func() bool { return metals(t, h) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	if n := metals(t, h); n != 0 {
		t.Errorf("got %d metal processes, want none", n)
	}
}

func TestStatus(t *testing.T) {
	h := newHome(t)
	if _, err := service.ReadStatus(t.Context(), h); !errors.Is(err, metal.ErrNoMetal) {
		t.Errorf("status of nothing: %v", err)
	}
	e := ensure(t, h)
	addDevice(t, h, "node-1")
	s, err := service.ReadStatus(t.Context(), h)
	if err != nil || !s.Running || s.PID != e.PID || s.MemoryBytes == 0 || s.Machines == nil || *s.Machines != 1 {
		t.Errorf("status %+v %v", s, err)
	}
	if _, err := service.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	want := service.Status{Home: h.Dir, Driver: driver, URL: e.APIURL(), Project: e.Project}
	if s, err = service.ReadStatus(t.Context(), h); err != nil || !cmp.Equal(s, want) {
		t.Errorf("status of a stopped metal: %v\n%s", err, cmp.Diff(want, s))
	}
}
