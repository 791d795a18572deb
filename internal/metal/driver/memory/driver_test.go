package memory

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

func TestMachineLifecycle(t *testing.T) {
	l := newLab(t)
	m := l.machine("a", "#!/bin/sh\n")
	mustDo(t, l.d.Ensure(t.Context(), m, driver.On))
	for step := firstStep; step <= lastStep; step++ {
		l.sink.waitFor(t, fmt.Sprintf("id-a Provisioning provisioning.%d", step))
	}
	l.sink.waitFor(t, "id-a Running")
	mustDo(t, l.d.Ensure(t.Context(), m, driver.On)) // Nothing changes.
	mustDo(t, l.d.Ensure(t.Context(), m, driver.Off))
	l.sink.waitFor(t, "id-a Off")
	mustDo(t, l.d.Ensure(t.Context(), m, driver.On))
	l.sink.waitFor(t, "id-a Running")
	m.OS = "debian_12"
	mustDo(t, l.d.Reinstall(t.Context(), m))
	l.sink.waitFor(t, "id-a Provisioning provisioning.102")
	l.sink.waitFor(t, "id-a Running")
	console, err := l.d.Console(t.Context(), m.ID, false)
	mustDo(t, err)
	text, err := io.ReadAll(console)
	mustDo(t, err)
	if !strings.Contains(string(text), "installing debian_12 as a") {
		t.Errorf("got console %q", text)
	}
	if known, _ := l.d.Known(t.Context()); !slices.Equal(known, []string{m.ID}) {
		t.Errorf("known = %v", known)
	}
	mustDo(t, l.d.Remove(t.Context(), m.ID))
	if known, _ := l.d.Known(t.Context()); len(known) != 0 {
		t.Errorf("after it was removed: %v", known)
	}
}

func TestSpeed(t *testing.T) {
	sink := &recorder{events: make(chan string, 100)}
	d, err := New(t.Context(), driver.Config{Home: t.TempDir(), Sink: sink, Speed: 100})
	mustDo(t, err)
	defer d.Close()
	began := time.Now()
	mustDo(t, d.Ensure(t.Context(), driver.Machine{ID: "x"}, driver.On))
	sink.waitFor(t, "x Running")
	want := (stepTime*(lastStep-firstStep+1) + bootTime) / 100
	if took := time.Since(began); took < want {
		t.Errorf("ready after %s at a hundredfold speed, want at least %s", took, want)
	}
}

func TestHomesUseDistinctAddresses(t *testing.T) {
	one := t.TempDir()
	a, err := openNetwork(one)
	mustDo(t, err)
	b, err := findFrom(int(a.prefix.Addr().As4()[1]) - firstSlot) // start at the first one
	mustDo(t, err)
	defer b.close()
	if a.prefix == b.prefix {
		t.Errorf("both homes have %s", a.prefix)
	}
	a.close()
	again, err := openNetwork(one)
	mustDo(t, err)
	defer again.close()
	if again.prefix != a.prefix {
		t.Errorf("a home had %s and has %s", a.prefix, again.prefix)
	}
	if _, err := openNetwork(one); err == nil {
		t.Error("two processes share the addresses of one home")
	}
	other, err := newNetwork(one)
	mustDo(t, err)
	other.close()
	if other.prefix == a.prefix {
		t.Error("addresses in use by another process were taken")
	}
}
