// Package memory is a driver with simulated machines. They go through the states of real machines
// on a clock that can be accelerated. A machine whose userdata runs `kubeadm init` or `kubeadm
// join` creates or joins a workload cluster inside this process. Only the disks of machines outlive
// the process: after a restart, metal provisions its machines again, and the userdata on their
// disks restores the clusters.
//
// Machines have addresses in 127.0.0.0/8, which are reachable on this host without setup. Start
// with New.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// Driver runs simulated machines.
type Driver struct {
	sink     driver.Sink
	log      *slog.Logger
	speed    float64
	network  *network
	clusters *clusters
	disks    disks

	mu       sync.Mutex
	machines map[string]*machine
	closed   bool
	running  sync.WaitGroup
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Upgrader = (*Driver)(nil)
)

// New creates the driver. It is a driver.New.
func New(_ context.Context, c driver.Config) (driver.Driver, error) {
	n, err := openNetwork(c.Home)
	if err != nil && c.Unused {
		n, err = newNetwork(c.Home)
	}
	if err != nil {
		return nil, fmt.Errorf("selecting addresses for simulated machines: %w", err)
	}
	log := cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	w, err := newClusters(log)
	if err != nil {
		n.close()
		return nil, fmt.Errorf("starting simulated workload clusters: %w", err)
	}
	if router, ok := c.Sink.(driver.Router); ok {
		w.mayAnnounce = router.MayAnnounce
	}
	return &Driver{sink: c.Sink, log: log, speed: c.Speed, network: n, clusters: w, disks: disks{dir: filepath.Join(c.Home, disksDir)}, machines: map[string]*machine{}}, nil
}

// Networks returns this home's part of the loopback network, and private addresses that nothing
// serves.
func (d *Driver) Networks() driver.Networks {
	return driver.Networks{Public: d.network.prefix, Private: netip.MustParsePrefix("10.128.0.0/9")}
}

// Ensure provisions a missing machine and sets the power state of an existing one.
func (d *Driver) Ensure(_ context.Context, spec driver.Machine, power driver.Power) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return context.Canceled
	}
	m, found := d.machines[spec.ID]
	if !found {
		var err error
		if spec.Userdata, err = d.disks.boot(spec.ID, spec.Userdata); err != nil {
			return fmt.Errorf("reading the disk of simulated machine %q: %w", spec.ID, err)
		}
		m = &machine{spec: spec, power: driver.Off, log: &console{}}
		d.machines[spec.ID] = m
	}
	m.spec.Tags = spec.Tags
	switch {
	case power == m.power:
	case power == driver.On && !m.installed:
		d.run(m, d.install)
	case power == driver.On:
		d.run(m, d.boot)
	case found:
		d.run(m, d.shutdown)
	}
	m.power = power
	return nil
}

// Reinstall provisions the machine again with the current specification.
func (d *Driver) Reinstall(_ context.Context, spec driver.Machine) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return context.Canceled
	}
	if err := d.disks.install(spec.ID, spec.Userdata); err != nil {
		return fmt.Errorf("writing the disk of simulated machine %q: %w", spec.ID, err)
	}
	m, found := d.machines[spec.ID]
	if !found {
		m = &machine{log: &console{}}
		d.machines[spec.ID] = m
	}
	m.spec, m.installed, m.power = spec, false, driver.On
	d.run(m, d.install)
	return nil
}

// Remove stops a machine and removes its node from its cluster.
func (d *Driver) Remove(_ context.Context, id string) error {
	d.mu.Lock()
	m, found := d.machines[id]
	delete(d.machines, id)
	d.mu.Unlock()
	if err := d.disks.remove(id); err != nil {
		return fmt.Errorf("removing the disk of simulated machine %q: %w", id, err)
	}
	if !found {
		return nil
	}
	m.halt()
	return d.clusters.remove(id)
}

// SetAddresses also serves the API of a control plane machine on its elastic addresses.
func (d *Driver) SetAddresses(_ context.Context, id string, elastic []netip.Addr) error {
	d.mu.Lock()
	m, found := d.machines[id]
	if found {
		m.elastic = slices.Clone(elastic)
	}
	d.mu.Unlock()
	if !found {
		return nil
	}
	return d.clusters.readdress(id)
}

// Known lists the machines.
func (d *Driver) Known(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]string, 0, len(d.machines))
	for id := range d.machines {
		ids = append(ids, id)
	}
	return ids, nil
}

// Close stops all machines.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	for _, m := range d.machines {
		m.halt()
	}
	d.mu.Unlock()
	d.running.Wait()
	d.network.close()
	return d.clusters.close()
}

// run replaces the current activity of a machine. The caller holds the lock.
func (d *Driver) run(m *machine, life func(context.Context, *machine)) {
	m.halt()
	ctx, cancel := context.WithCancel(context.Background())
	before, done := m.done, make(chan struct{})
	m.cancel, m.done = cancel, done
	d.running.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		life(ctx, m)
	})
}

// wait waits in simulated time. It returns false if the machine was halted.
func (d *Driver) wait(ctx context.Context, t time.Duration) bool {
	if d.speed > 0 {
		t = time.Duration(float64(t) / d.speed)
	}
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
