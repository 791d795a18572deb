package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// Driver implements driver.Driver, driver.Console, driver.Metadata,
// driver.Shell, driver.Host, driver.Supplier and driver.Upgrader.
type Driver struct {
	home    string
	name    string // 8 hex digits in the names of all kernel objects
	sink    driver.Sink
	log     *slog.Logger
	network network
	pins    pins
	program string
	// hostUsers makes users of new machines users of the host. Tests set it.
	hostUsers bool
	// ctx ends when the driver is closed.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	machines map[string]*machine
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Console  = (*Driver)(nil)
	_ driver.Metadata = (*Driver)(nil)
	_ driver.Shell    = (*Driver)(nil)
	_ driver.Host     = (*Driver)(nil)
	_ driver.Supplier = (*Driver)(nil)
	_ driver.Upgrader = (*Driver)(nil)
	_ driver.New      = New
)

// New opens the home, adopts running machines, and cleans up after a killed host or driver. It
// requires root.
func New(ctx context.Context, c driver.Config) (driver.Driver, error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := d.adopt(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Name is part of the names of all kernel objects of a home, so that machines of two homes can
// coexist.
func Name(home string) string {
	sum := sha256.Sum256([]byte(home))
	return hex.EncodeToString(sum[:4])
}

func open(ctx context.Context, c driver.Config) (*Driver, error) {
	home, err := filepath.Abs(c.Home)
	if err != nil {
		return nil, err
	}
	// Reported now instead of with the first machine.
	if err := Usable(home); err != nil {
		return nil, err
	}
	if err := raise(instancesLimit, instances); err != nil {
		c.Log.Warn("the inotify limit allows only a few machines", "error", err)
	}
	if err := loadModules(); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the running executable: %w", err)
	}
	d := &Driver{
		home: home, name: Name(home), sink: c.Sink, log: c.Log, program: program, machines: map[string]*machine{},
	}
	for _, dir := range []string{d.machinesDir(), d.imagesDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating the directories of machines and images: %w", err)
		}
	}
	if err := d.removeAbandoned(); err != nil {
		d.log.Warn("leftovers of killed drivers remain", "error", err)
	}
	if d.network, err = d.openNetwork(); err != nil {
		return nil, fmt.Errorf("setting up the bridge of local machines: %w", err)
	}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return d, nil
}

const machinesDir = "machines"

func (d *Driver) machinesDir() string { return filepath.Join(d.home, machinesDir) }

func (d *Driver) imagesDir() string { return filepath.Join(d.home, imagesDir) }

// Networks implements driver.Driver.
func (d *Driver) Networks() driver.Networks {
	return driver.Networks{Public: d.network.Public, Private: d.network.Private, Flat: true, Endpoints: true}
}

// HostAddress implements driver.Host.
func (d *Driver) HostAddress() netip.Addr { return gateway(d.network.Public) }

// Known implements driver.Driver.
func (d *Driver) Known(context.Context) ([]string, error) {
	entries, err := os.ReadDir(d.machinesDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing local machines: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// machine returns the single object that serializes the work on a machine.
func (d *Driver) machine(id string) (*machine, error) {
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return nil, fmt.Errorf("invalid machine ID %q", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.machines[id]
	if m == nil {
		m = &machine{driver: d, id: id, dir: filepath.Join(d.machinesDir(), id)}
		d.machines[id] = m
	}
	return m, nil
}

// Ensure implements driver.Driver.
func (d *Driver) Ensure(_ context.Context, want driver.Machine, power driver.Power) error {
	m, err := d.machine(want.ID)
	if err != nil {
		return err
	}
	d.background(m, func() error { return m.ensure(want, power) })
	return nil
}

// Reinstall implements driver.Driver.
func (d *Driver) Reinstall(_ context.Context, want driver.Machine) error {
	m, err := d.machine(want.ID)
	if err != nil {
		return err
	}
	d.background(m, func() error { return m.reinstall(want) })
	return nil
}

// background queues work on a machine and reports a failure to metal.
func (d *Driver) background(m *machine, work func() error) {
	turn := m.queue()
	d.wg.Go(func() {
		defer turn.done()
		if turn.wait(d.ctx) != nil {
			return
		}
		failed := driver.Event{Phase: driver.Failed, Type: "provisioning.failed"}
		if exists(m.path(guest.SpecFile)) {
			failed = driver.Event{Phase: driver.Stopped} // It can be powered on again.
		}
		if err := work(); err != nil && d.ctx.Err() == nil {
			d.log.Error("local machine operation failed", "machine", m.id, "error", err)
			failed.Message = err.Error()
			m.report(failed)
		}
	})
}

// tidy removes the userdata of a machine that has executed it.
func (d *Driver) tidy(m *machine) {
	turn := m.queue()
	d.wg.Go(func() {
		defer turn.done()
		if turn.wait(d.ctx) != nil {
			return
		}
		if err := m.forgetUserdata(); err != nil {
			d.log.Error("removing the userdata of a local machine failed", "machine", m.id, "error", err)
		}
	})
}

// Remove implements driver.Driver.
func (d *Driver) Remove(ctx context.Context, id string) error {
	return d.inTurn(ctx, id, func(m *machine) error {
		if err := m.remove(ctx); err != nil {
			return fmt.Errorf("removing local machine %q: %w", id, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.machines, id)
		return nil
	})
}

// SetAddresses implements driver.Driver.
func (d *Driver) SetAddresses(ctx context.Context, id string, elastic []netip.Addr) error {
	return d.inTurn(ctx, id, func(m *machine) error {
		if err := m.setElastic(elastic); err != nil {
			return fmt.Errorf("assigning elastic addresses to local machine %q: %w", id, err)
		}
		return nil
	})
}

// inTurn runs work on a machine after all work that was queued before.
func (d *Driver) inTurn(ctx context.Context, id string, work func(m *machine) error) error {
	m, err := d.machine(id)
	if err != nil {
		return err
	}
	turn := m.queue()
	defer turn.done()
	if err := turn.wait(ctx); err != nil {
		return err
	}
	return work(m)
}

// Close implements driver.Driver. The bridge is removed with the last machine.
func (d *Driver) Close() error {
	d.cancel()
	d.wg.Wait()
	ids, err := d.Known(context.Background())
	if err != nil || len(ids) > 0 {
		return err
	}
	return errors.Join(d.removeNetwork(), d.removeCgroup(""))
}

// adopt resumes watching running machines and removes leftovers.
func (d *Driver) adopt() error {
	ids, err := d.Known(d.ctx)
	if err != nil {
		return err
	}
	if err := d.pinAll(ids); err != nil {
		return err
	}
	for _, id := range ids {
		m, err := d.machine(id)
		if err != nil {
			return err
		}
		d.tidy(m) // An older Drover left it, or a killed one.
		if p, ok := m.process(); ok {
			d.log.Info("adopted a local machine", "machine", id, "pid", p.PID)
			if err := d.securePortOf(id); err != nil { // An older Drover may have started it.
				return err
			}
			m.deliver() // Metal serves userdata next, and must know if that has ended.
			m.watch(p)
			continue
		}
		// The machine was rebooting while no driver was running.
		if m.exitReason() == guest.ExitReboot {
			d.background(m, m.reboot)
		}
	}
	return d.removeLeftovers(ids)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
