package local

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// TestMain lets the test binary start machines and run in them, with a umask that machines must not
// inherit.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == attackCommand {
		os.Exit(attack())
	}
	if code, ok := Main(os.Args); ok {
		os.Exit(code)
	}
	syscall.Umask(0o077)
	os.Exit(m.Run())
}

// sink records reports.
type sink struct {
	mu     sync.Mutex
	events map[string][]driver.Event
	change chan struct{}
}

func (s *sink) Report(id string, e driver.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[id] = append(s.events[id], e)
	close(s.change)
	s.change = make(chan struct{})
	return nil
}

// await waits for an event that matches, among those after the first skip.
func (s *sink) await(t *testing.T, id string, skip int, timeout time.Duration, match func(driver.Event) bool) driver.Event {
	t.Helper()
	deadline := time.After(timeout)
	for {
		s.mu.Lock()
		events, change := s.events[id], s.change
		s.mu.Unlock()
		for _, e := range events[min(skip, len(events)):] {
			if match(e) {
				return e
			}
			if e.Phase == driver.Failed {
				t.Fatalf("the machine failed: %s", e.Message)
			}
		}
		select {
		case <-deadline:
			t.Fatalf("no such event within %s; events: %+v", timeout, events)
		case <-change:
		}
	}
}

func (s *sink) count(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events[id])
}

// soon is a timeout that is generous on a busy host.
const soon = 2 * time.Minute

// fixture is a driver with its own home.
type fixture struct {
	*Driver
	t    *testing.T
	sink *sink
	next netip.Addr
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("makes machines: left out of short runs")
	}
	if os.Geteuid() != 0 {
		t.Skip("local machines need root")
	}
	// Not t.TempDir: a machine that can't be removed must be reported as a failure of the driver.
	home, err := os.MkdirTemp("", "drover-local-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, sink: &sink{events: map[string][]driver.Event{}, change: make(chan struct{})}}
	f.open(home)
	t.Cleanup(f.tearDown)
	return f
}

// open starts the driver on a home, as metal does.
func (f *fixture) open(home string) {
	f.t.Helper()
	d, err := New(f.t.Context(), driver.Config{Home: home, Sink: f.sink, Log: slog.New(slog.NewTextHandler(f.t.Output(), nil))})
	if node.IsMissing(err) {
		os.RemoveAll(home)
		f.t.Skip(err)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.Driver = d.(*Driver)
	if !f.next.IsValid() {
		f.next = gateway(f.network.Public)
	}
}

func (f *fixture) tearDown() {
	ids, _ := f.Known(context.Background())
	for _, id := range ids {
		if f.t.Failed() {
			f.t.Logf("console of %s:\n%s", id, f.console(id))
		}
		if err := f.Remove(context.Background(), id); err != nil {
			f.t.Error(err)
		}
	}
	if err := f.Close(); err != nil {
		f.t.Error(err)
	}
	if out, err := exec.Command("nft", "list", "tables").CombinedOutput(); err != nil || strings.Contains(string(out), f.filterTable()) {
		f.t.Errorf("the packet filter is still there: %s (%v)", out, err)
	}
	os.RemoveAll(f.home)
}

// device returns a machine with the next free addresses.
func (f *fixture) device(hostname, userdata string) driver.Machine {
	f.next = f.next.Next()
	public := f.next
	offset := public.As4()
	private := gateway(f.network.Private).As4()
	private[3] = offset[3]
	id := uuid.NewString()
	return driver.Machine{
		ID: id, Hostname: hostname, Plan: "local.small", OS: "debian_12", MemoryBytes: 2 << 30, CPUs: 2, Userdata: []byte(userdata),
		Addresses: []driver.Address{
			{IP: public, Prefix: f.network.Public, Gateway: gateway(f.network.Public), Public: true, Management: true},
			{IP: netip.AddrFrom4(private), Prefix: f.network.Private, Gateway: gateway(f.network.Private), Management: true},
		},
		Instance: driver.InstanceData{InstanceID: id, LocalHostname: hostname, Region: "da"},
	}
}

// boot starts a machine and waits until its userdata has been executed.
func (f *fixture) boot(m driver.Machine) {
	f.t.Helper()
	if err := f.Ensure(f.t.Context(), m, driver.On); err != nil {
		f.t.Fatal(err)
	}
	f.succeeded(m.ID, 0)
}

func (f *fixture) succeeded(id string, skip int) {
	f.t.Helper()
	e := f.sink.await(f.t, id, skip, 3*time.Minute, func(e driver.Event) bool {
		return strings.HasPrefix(e.Message, "succeeded") || strings.HasPrefix(e.Message, "failed")
	})
	if !strings.HasPrefix(e.Message, "succeeded") {
		f.t.Fatalf("userdata %s\nconsole:\n%s", e.Message, f.console(id))
	}
}

// run runs a command in a machine and returns its output.
func (f *fixture) run(id, line string) string {
	f.t.Helper()
	out, err := f.try(id, line)
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func (f *fixture) try(id, line string) (string, error) {
	var out bytes.Buffer
	err := f.Enter(f.t.Context(), id, []string{"bash", "-c", line}, driver.Stdio{Out: &out, Err: &out})
	return strings.TrimSpace(out.String()), err
}

// eventually runs a command until it succeeds.
func (f *fixture) eventually(id, line string, timeout time.Duration) string {
	f.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		out, err := f.try(id, line)
		if err == nil {
			return out
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: still %v after %s\n%s", line, err, timeout, out)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (f *fixture) console(id string) string {
	r, err := f.Console(context.Background(), id, false)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	data, _ := io.ReadAll(r)
	return string(data)
}
