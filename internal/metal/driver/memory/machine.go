package memory

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// Durations in simulated time.
const (
	stepTime     = 3 * time.Second
	bootTime     = 5 * time.Second
	shutdownTime = 2 * time.Second
	firstStep    = 102
	lastStep     = 109
)

// machine is a simulated machine. The driver's lock protects its fields, except the console.
type machine struct {
	spec      driver.Machine
	power     driver.Power
	installed bool
	elastic   []netip.Addr
	cancel    context.CancelFunc
	done      chan struct{}
	log       *console
}

// halt cancels the current activity.
func (m *machine) halt() {
	if m.cancel != nil {
		m.cancel()
	}
}

// snapshot returns the machine's specification.
func (d *Driver) snapshot(m *machine) driver.Machine {
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.spec
}

// elastic returns the machine's elastic addresses, which may change at any time.
func (d *Driver) elastic(m *machine) []netip.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(m.elastic)
}

// install provisions a machine step by step and boots it.
func (d *Driver) install(ctx context.Context, m *machine) {
	spec := d.snapshot(m)
	m.log.printf("installing %s as %s", spec.OS, spec.Hostname)
	if err := d.clusters.remove(spec.ID); err != nil {
		d.log.Warn("leaving a simulated cluster failed", "machine", spec.ID, "error", err)
	}
	for step := firstStep; step <= lastStep; step++ {
		if !d.wait(ctx, stepTime) {
			return
		}
		_ = d.sink.Report(spec.ID, driver.Event{
			Phase: driver.Provisioning, Percent: (step - 100) * 10, Type: fmt.Sprintf("provisioning.%d", step),
		})
	}
	d.mu.Lock()
	m.installed = true
	d.mu.Unlock()
	d.boot(ctx, m)
}

// boot starts the machine and executes its userdata.
func (d *Driver) boot(ctx context.Context, m *machine) {
	if !d.wait(ctx, bootTime) {
		return
	}
	spec := d.snapshot(m)
	m.log.printf("booting %s", spec.Hostname)
	_ = d.sink.Report(spec.ID, driver.Event{Phase: driver.Running, Percent: 100})
	err := d.clusters.boot(ctx, spec, func() []netip.Addr { return d.elastic(m) })
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.log.printf("userdata failed: %v", err)
		_ = d.sink.Report(spec.ID, driver.Event{Type: "user-state", Message: fmt.Sprintf("failed: %v", err)})
	default:
		m.log.printf("userdata done")
		_ = d.sink.Report(spec.ID, driver.Event{Type: "user-state", Message: "succeeded"})
	}
}

// shutdown powers the machine off; its node stops responding.
func (d *Driver) shutdown(ctx context.Context, m *machine) {
	if !d.wait(ctx, shutdownTime) {
		return
	}
	spec := d.snapshot(m)
	m.log.printf("powering off")
	d.clusters.powerOff(spec.ID)
	_ = d.sink.Report(spec.ID, driver.Event{Phase: driver.Stopped})
}
