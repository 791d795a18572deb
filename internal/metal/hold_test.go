package metal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHomeIsHeldByOneProcess(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), "metal")}
	if h.Held() || h.Holder().PID != 0 {
		t.Error("a missing home is held, want it free")
	}
	release, err := h.Hold()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Hold(); err == nil || !strings.Contains(err.Error(), "in use by another metal") {
		t.Errorf("a second metal: %v", err)
	}
	if !h.Held() || h.Holder().PID != os.Getpid() {
		t.Errorf("held: %v, by %+v", h.Held(), h.Holder())
	}
	release()
	if h.Held() {
		t.Error("the home is not held")
	}
}

func TestHomeBelongsToOneDriver(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	if err := h.CheckDriver("local"); err != nil || h.LastDriver() != "" {
		t.Errorf("a new home: %v, driver %q", err, h.LastDriver())
	}
	if err := os.Mkdir(h.driverDir("memory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := h.LastDriver(); got != "memory" {
		t.Errorf("a home that lost its endpoint has driver %q", got)
	}
	if err := h.WriteEndpoint(Endpoint{URL: "http://127.0.0.1:1", Driver: "local"}); err != nil {
		t.Fatal(err)
	}
	if got := h.LastDriver(); got != "local" {
		t.Errorf("driver %q, want local", got)
	}
	var other *DriverError
	if err := h.CheckDriver("memory"); !errors.As(err, &other) {
		t.Errorf("another driver: %v", err)
	}
	if err := h.CheckDriver("local"); err != nil {
		t.Errorf("the same driver: %v", err)
	}
}

func TestHomeWithMachinesIsNotRemoved(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), "metal")}
	machine := filepath.Join(h.driverDir("local"), "machines", "8d0c")
	if err := os.MkdirAll(machine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(); err == nil || !strings.Contains(err.Error(), "still has machines") {
		t.Errorf("got error %v, want one that contains %q", err, "still has machines")
	}
	if _, err := os.Stat(machine); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(machine); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
}

func TestHomeIsRemovedWithItsCA(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), "metal")}
	if _, err := h.ServerTLS([]string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("the home still exists: %v", err)
	}
}
