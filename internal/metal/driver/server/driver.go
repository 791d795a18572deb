package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/driver"
)

const (
	machinesDir = "machines"
	// addressesFile has the range of elastic addresses.
	addressesFile = "addresses"
)

// Driver implements driver.Driver and the interfaces of servers.
type Driver struct {
	home      string
	sink      driver.Sink
	inventory driver.Inventory
	log       *slog.Logger
	elastic   netip.Prefix
	// program is what servers run as the agent.
	program string
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu       sync.Mutex
	machines map[string]*machine
}

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Upgrader  = (*Driver)(nil)
	_ driver.Operator  = (*Driver)(nil)
	_ driver.Console   = (*Driver)(nil)
	_ driver.New       = New
)

// New opens the home.
func New(ctx context.Context, c driver.Config) (driver.Driver, error) {
	inventory, ok := c.Sink.(driver.Inventory)
	if !ok {
		return nil, errors.New("the driver server requires an inventory")
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the running executable: %w", err)
	}
	d := &Driver{home: c.Home, sink: c.Sink, inventory: inventory, log: c.Log, program: program, machines: map[string]*machine{}}
	if d.elastic, err = readRange(c.Home); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(c.Home, machinesDir), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of machines: %w", err)
	}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return d, nil
}

// SetRange makes the driver of a home allocate elastic addresses from a range. It must be part of
// the network of the servers, and nothing else may use it.
func SetRange(home string, elastic netip.Prefix) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(home, addressesFile), []byte(elastic.String()+"\n"), 0o600)
}

func readRange(home string) (netip.Prefix, error) {
	data, err := os.ReadFile(filepath.Join(home, addressesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return netip.Prefix{}, nil
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading the range of elastic addresses: %w", err)
	}
	p, err := netip.ParsePrefix(strings.TrimSpace(string(data)))
	if err != nil {
		return p, fmt.Errorf("the range of elastic addresses is damaged: %w: set it with `drover metal serve --addresses`", err)
	}
	return p, nil
}

// Networks implements driver.Driver.
func (d *Driver) Networks() driver.Networks {
	return driver.Networks{Own: true, Flat: true, Endpoints: true, Public: d.elastic}
}

// Known implements driver.Driver. Metal knows the machines: each has a server of the inventory.
func (d *Driver) Known(context.Context) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.home, machinesDir))
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}

// machine returns the single object that serializes the work on a machine.
func (d *Driver) machine(id string) *machine {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.machines[id]
	if m == nil {
		m = &machine{driver: d, id: id, dir: filepath.Join(d.home, machinesDir, filepath.Base(id)), turn: make(chan struct{}, 1)}
		d.machines[id] = m
	}
	return m
}

// Ensure implements driver.Driver.
func (d *Driver) Ensure(_ context.Context, want driver.Machine, power driver.Power) error {
	if want.Server == nil {
		return fmt.Errorf("machine %q has no server", want.ID)
	}
	d.background(want.ID, func(m *machine) error { return m.ensure(want, power) })
	return nil
}

// Reinstall implements driver.Driver.
func (d *Driver) Reinstall(_ context.Context, want driver.Machine) error {
	if want.Server == nil {
		return fmt.Errorf("machine %q has no server", want.ID)
	}
	d.background(want.ID, func(m *machine) error {
		if err := d.Clean(d.ctx, *want.Server); err != nil {
			return fmt.Errorf("restoring the server: %w", err)
		}
		if err := m.forget(); err != nil {
			return err
		}
		return m.ensure(want, driver.On)
	})
	return nil
}

// background queues work on a machine and reports a failure to metal. Work in progress includes
// what is queued: it reads the specification when it begins.
func (d *Driver) background(id string, work func(m *machine) error) {
	m := d.machine(id)
	d.wg.Go(func() {
		if m.lock(d.ctx) != nil {
			return
		}
		defer m.unlock()
		if err := work(m); err != nil && d.ctx.Err() == nil {
			d.log.Error("server operation failed", "machine", id, "error", err)
			m.report(driver.Event{Phase: driver.Failed, Type: "provisioning.failed", Message: err.Error()})
		}
	})
}

// Remove implements driver.Driver.
func (d *Driver) Remove(ctx context.Context, id string) error {
	m := d.machine(id)
	m.interrupt()
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	s, found, err := d.inventory.ServerOf(id)
	if err != nil {
		return err
	}
	if found && m.started() {
		if err := d.Clean(ctx, s); err != nil {
			return fmt.Errorf("restoring server %q: %w", s.Name, err)
		}
	}
	if err := m.forget(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.machines, id)
	return nil
}

// SetAddresses implements driver.Driver. Those of a server that is being provisioned are set
// afterwards.
func (d *Driver) SetAddresses(_ context.Context, id string, elastic []netip.Addr) error {
	m := d.machine(id)
	m.want(elastic)
	if !m.provisioned() || m.hasAddresses(elastic) {
		return nil
	}
	d.background(id, func(m *machine) error { return m.setAddresses() })
	return nil
}

// Close implements driver.Driver. Servers keep working.
func (d *Driver) Close() error {
	d.cancel()
	d.wg.Wait()
	return nil
}
