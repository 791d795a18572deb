package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
	"github.com/drover-dev/drover/internal/metal/tags"
)

const (
	stateFile = "state.json"
	// offTimeout is how long a machine may take to shut down.
	offTimeout  = 20 * time.Second
	killTimeout = 20 * time.Second
)

// machine is a machine. Its methods are called one at a time, through the queue, except where
// noted.
//
//	<home>/machines/<id>/
//	  image          link to what it was made from
//	  spec.json      what the first process needs to know
//	  state.json     which process that is
//	  console.log    what it says
//	  events.jsonl   what it reports, and events.offset: how much of it metal knows
//	  exit           why it ended
//	  upper work     the writable layer of the root file system, mounted on root
//	  data           what can't lie on an overlay
type machine struct {
	driver *Driver
	id     string
	dir    string

	lineMu sync.Mutex
	line   <-chan struct{}

	watchMu sync.Mutex
	watched process
	stopped chan struct{} // closed when watching the process has ended
	// wantOff marks a requested shutdown for the watch.
	wantOff bool

	deliverMu sync.Mutex // serializes reading the file of events
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

// process returns the machine's first process if it is running.
func (m *machine) process() (process, bool) {
	data, err := os.ReadFile(m.path(stateFile))
	if err != nil {
		return process{}, false
	}
	var p process
	if err := json.Unmarshal(data, &p); err != nil {
		return process{}, false
	}
	return p, p.alive()
}

func (m *machine) ensure(want driver.Machine, power driver.Power) error {
	p, running := m.process()
	switch {
	case power == driver.Off && running:
		return m.powerOff(p)
	case power == driver.Off:
		m.report(driver.Event{Phase: driver.Stopped, Message: "machine is powered off"})
		return nil
	case running:
		m.watch(p)
		m.report(driver.Event{Phase: driver.Running, Percent: 100, Message: "machine is running"})
		return nil
	}
	return m.powerOn(want)
}

// powerOn boots the machine, for the first time or again.
func (m *machine) powerOn(want driver.Machine) error {
	if !exists(m.path(guest.SpecFile)) {
		if err := m.provision(want, 0); err != nil {
			return err
		}
	}
	if err := errors.Join(m.clearExit(), m.forgetUserdata(), m.refreshSpec()); err != nil {
		return err
	}
	if err := m.pin(); err != nil {
		return err
	}
	p, err := m.launch()
	if err != nil {
		return fmt.Errorf("booting: %w", err)
	}
	m.watch(p)
	return nil
}

// pin lets the machine use the addresses in its spec.
func (m *machine) pin() error {
	s, err := guest.ReadSpec(m.dir)
	if err != nil {
		return err
	}
	return m.driver.pin(s)
}

// provision creates the directory of a new machine. The spec is written last: a directory without
// one is created again.
func (m *machine) provision(want driver.Machine, reinstalled int) error {
	m.progress(10, "provisioning.101", "Provisioning started")
	builder, err := node.NewBuilder(tags.KubernetesVersion(want.Tags), m.driver.log)
	if err != nil {
		return err
	}
	image, err := builder.Image(m.driver.ctx)
	if err != nil {
		return err
	}
	m.progress(40, "provisioning.102", "Network configured")
	if err := os.RemoveAll(m.dir); err != nil {
		return err
	}
	for _, dir := range []string{"root", "upper", "work", "data/kubelet", "data/etcd"} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			return err
		}
		// Users of the machine traverse this directory, whatever the umask of the caller.
		if err := os.Chmod(m.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(m.dir, 0o700); err != nil {
		return err
	}
	if err := image.Hold(m.dir); err != nil {
		return err
	}
	if err := image.CopyStore(m.path("data/containerd")); err != nil {
		return fmt.Errorf("copying the image store: %w", err)
	}
	spec := m.spec(want, image)
	spec.Reinstalled = reinstalled
	if err := spec.Write(m.dir); err != nil {
		return err
	}
	m.progress(70, "provisioning.103", "Configuration written, restarting device")
	return nil
}

func (m *machine) progress(percent int, kind, message string) {
	m.report(driver.Event{Phase: driver.Provisioning, Percent: percent, Type: kind, Message: message})
}

func (m *machine) report(e driver.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	_ = m.driver.sink.Report(m.id, e) // Metal logs it.
}

// spec returns the configuration of the first process.
func (m *machine) spec(want driver.Machine, image node.Image) guest.Spec {
	s := guest.Spec{
		ID: m.id, Hostname: want.Hostname, HostUsers: m.driver.hostUsers, Dir: m.dir, Lower: image.Root(), Program: m.driver.program, Images: m.driver.imagesDir(),
		CPUs: want.CPUs, MemoryBytes: want.MemoryBytes, SSHKeys: want.SSHKeys, Userdata: want.Userdata,
		Metadata: m.driver.network.metadata(), Variables: want.Variables(), Endpoint: want.Endpoint,
	}
	for _, a := range want.Addresses {
		if a.IP.IsValid() {
			s.Addresses = append(s.Addresses, guest.Address{IP: a.IP, Prefix: a.Prefix, Gateway: a.Gateway})
		}
	}
	return s
}

// refreshSpec updates the settings that depend on the host, which may run a newer Drover than the
// one that provisioned the machine.
func (m *machine) refreshSpec() error {
	s, err := guest.ReadSpec(m.dir)
	if err != nil {
		return err
	}
	metadata := m.driver.network.metadata()
	images := m.driver.imagesDir()
	if s.Program == m.driver.program && s.Metadata == metadata && s.Images == images {
		return nil
	}
	s.Program, s.Metadata, s.Images = m.driver.program, metadata, images
	return s.Write(m.dir)
}

// forgetUserdata removes the userdata from the spec after the first boot. What a later boot needs
// remains.
func (m *machine) forgetUserdata() error {
	if !guest.Booted(m.dir) {
		return nil
	}
	s, err := guest.ReadSpec(m.dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && s.Later != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return s.WithoutUserdata().Write(m.dir)
}

func (m *machine) clearExit() error {
	err := os.Remove(m.path(guest.ExitFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (m *machine) powerOff(p process) error {
	m.endWatch()
	if err := p.stop(offTimeout); err != nil {
		return err
	}
	if err := m.driver.removeCgroup(m.id); err != nil {
		return err
	}
	m.report(driver.Event{Phase: driver.Stopped, Message: "machine is powered off"})
	return nil
}

// reinstall wipes and boots the machine. It keeps elastic addresses, which are assigned to the
// device.
func (m *machine) reinstall(want driver.Machine) error {
	var old guest.Spec
	if s, err := guest.ReadSpec(m.dir); err == nil {
		old = s
	}
	if p, ok := m.process(); ok {
		m.endWatch()
		if err := p.stop(0); err != nil {
			return err
		}
	}
	if err := m.provision(want, old.Reinstalled+1); err != nil {
		return err
	}
	spec, err := guest.ReadSpec(m.dir)
	if err != nil {
		return err
	}
	spec.Elastic, spec.Mapped = old.Elastic, old.Mapped
	if err := spec.Write(m.dir); err != nil {
		return err
	}
	return m.powerOn(want)
}

// remove stops the machine and removes everything of it. It may be repeated after a failure.
func (m *machine) remove(ctx context.Context) error {
	m.endWatch()
	if p, ok := m.process(); ok {
		if err := p.stop(0); err != nil {
			return err
		}
	}
	if err := m.driver.removeLink(m.id); err != nil {
		return err
	}
	if err := m.driver.unpin(m.id); err != nil {
		return err
	}
	if err := m.driver.removeCgroup(m.id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return os.RemoveAll(m.dir)
}

// setElastic stores the elastic addresses and configures them if the machine is running.
func (m *machine) setElastic(elastic []netip.Addr) error {
	spec, err := guest.ReadSpec(m.dir)
	if errors.Is(err, os.ErrNotExist) {
		if len(elastic) == 0 {
			return nil
		}
		return errors.New("the machine is not provisioned yet")
	}
	if err != nil {
		return err
	}
	// Whichever of its machines the endpoint is assigned to, their agents decide which has it.
	elastic = without(elastic, []netip.Addr{spec.Endpoint})
	gone := without(spec.Elastic, elastic)
	spec.Elastic = elastic
	if err := spec.Write(m.dir); err != nil {
		return err
	}
	if err := m.driver.pinAssigned(spec); err != nil {
		return err
	}
	p, ok := m.process()
	if !ok {
		return nil
	}
	return moveAddresses(p.PID, elastic, gone)
}
