package metal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/store"
)

// hardware is what really happens to simulated servers. It outlives every metal service: a service
// that is killed leaves on them what it had done.
type hardware struct {
	random *rand.Rand
	// occupant is the device whose software is on a server, dirty the servers that can't be restored.
	occupant map[string]string
	dirty    map[string]bool
	broken   string
}

// occupy installs a device on a server, which must be empty or have it already.
func (h *hardware) occupy(server, device string) {
	if other := h.occupant[server]; other != "" && other != device {
		h.broken = fmt.Sprintf("device %s was installed on server %s, which still has device %s", device, server, other)
	}
	for s, d := range h.occupant {
		if d == device && s != server {
			h.broken = fmt.Sprintf("device %s is on servers %s and %s", device, s, server)
		}
	}
	if h.dirty[server] {
		h.broken = fmt.Sprintf("device %s was installed on server %s, which could not be restored", device, server)
	}
	h.occupant[server] = device
}

// errKilled is a call during which the process was killed, before or after it had an effect.
var errKilled = errors.New("killed")

// crash decides whether the process is killed here.
func (h *hardware) crash() error {
	if h.random.IntN(6) == 0 {
		return errKilled
	}
	return nil
}

// simulated is a driver on such hardware.
type simulated struct {
	*hardware

	sink driver.Sink
}

func (s *simulated) Networks() driver.Networks { return driver.Networks{Own: true} }

func (s *simulated) Ensure(_ context.Context, m driver.Machine, _ driver.Power) error {
	if err := s.crash(); err != nil {
		return err
	}
	if m.Server == nil {
		return errors.New("no server")
	}
	s.occupy(m.Server.Name, m.ID)
	if err := s.crash(); err != nil {
		return err
	}
	return s.sink.Report(m.ID, driver.Event{Phase: driver.Running})
}

func (s *simulated) Reinstall(ctx context.Context, m driver.Machine) error {
	return s.Ensure(ctx, m, driver.On)
}

func (s *simulated) Remove(_ context.Context, id string) error {
	server, found, err := s.sink.(driver.Inventory).ServerOf(id)
	if err != nil || !found {
		return err
	}
	if err := s.crash(); err != nil {
		return err
	}
	if s.random.IntN(8) == 0 {
		s.dirty[server.Name] = true
		return &driver.UncleanError{Problem: driver.Problem{Check: "clean", Message: "something is left", Remedy: "remove it"}}
	}
	if s.occupant[server.Name] == id {
		delete(s.occupant, server.Name)
	}
	return s.crash()
}

func (s *simulated) Inspect(_ context.Context, t driver.Server) (driver.Facts, []driver.Problem, error) {
	if d := s.occupant[t.Name]; d != "" {
		return driver.Facts{CPUs: 8}, []driver.Problem{{Check: "remnants", Message: "device " + d}}, nil
	}
	return driver.Facts{CPUs: 8, MemoryBytes: 32 << 30, Address: addressOfName(t.Name)}, nil, nil
}

func (s *simulated) Clean(_ context.Context, t driver.Server) error {
	if err := s.crash(); err != nil {
		return err
	}
	delete(s.occupant, t.Name)
	delete(s.dirty, t.Name)
	return nil
}

func (s *simulated) SetAddresses(context.Context, string, []netip.Addr) error { return nil }

func (s *simulated) Known(context.Context) ([]string, error) { return nil, nil }

func (s *simulated) Close() error { return nil }

// modelRun is one run: metal services on one store, one after the other, each killed at a random
// point. Calls are made one at a time, so that a seed always does the same.
type modelRun struct {
	t      *testing.T
	store  *store.Store
	sealer *inventory.Sealer
	driver *simulated
	s      *Server
	random *rand.Rand
}

// restart kills the service: only the store and the hardware remain.
func (r *modelRun) restart() {
	s := &Server{
		store: r.store, sealer: r.sealer, driver: r.driver, networks: r.driver.Networks(), log: slog.New(slog.DiscardHandler), now: time.Now,
		faults: fault.NewSet(), limits: &limits{perWindow: defaultRateLimit, now: time.Now},
	}
	s.devices, s.inspections = newController(s, 1), newInspections(s)
	s.routes = s.newRoutes()
	r.s, r.driver.sink = s, s
}

func (r *modelRun) call(method, path, body string) (status int, answer string) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Auth-Token", modelToken)
	w := httptest.NewRecorder()
	r.s.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// work does what the controller does, one step for one device.
func (r *modelRun) work(id string) {
	if _, err := r.s.devices.reconcile(r.t.Context(), id); errors.Is(err, errKilled) {
		r.restart()
	}
}

func (r *modelRun) check(did string) {
	r.t.Helper()
	if r.driver.broken != "" {
		r.t.Fatalf("after %s: %s", did, r.driver.broken)
	}
	servers, devices := serversAndDevices(r.t, r.s)
	if wrong := disagreement(servers, devices); wrong != "" {
		r.t.Fatalf("after %s: %s", did, wrong)
	}
}

const (
	modelToken   = "token-of-an-administrator"
	modelProject = "00000000-0000-4000-8000-000000000001"
)

// modelStore opens a store in memory, where the kernel has some: a run writes thousands of times.
func modelStore(t *testing.T) (*store.Store, *inventory.Sealer) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "drover-model-") //nolint:usetesting // t.TempDir is on a disk.
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	st, err := store.Open(filepath.Join(dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	sealer, err := inventory.OpenSealer(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	err = st.Update(func(tx *store.Tx) error {
		return errors.Join(tx.Tokens().Put(&store.Token{Hash: hashToken(modelToken)}), tx.Projects().Put(&store.Project{ID: modelProject, Name: "model"}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, sealer
}

func addressOfName(name string) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, name[0]}), 24)
}

// newModelRun begins with three servers that were never checked, and no device.
func newModelRun(t *testing.T, st *store.Store, sealer *inventory.Sealer, seed uint64) *modelRun {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 42))
	r := &modelRun{t: t, store: st, sealer: sealer, random: random, driver: &simulated{hardware: &hardware{random: random, occupant: map[string]string{}, dirty: map[string]bool{}}}}
	err := st.Update(func(tx *store.Tx) error {
		var err error
		for i, name := range []string{"a", "b", "c"} {
			err = errors.Join(err, tx.Servers().Put(&inventory.Server{
				ID: "server-" + name, Seq: uint64(i), Spec: inventory.Spec{Name: name, Plan: "c3.small.x86", SSH: &driver.SSH{Host: name, User: "root"}},
				Status: inventory.Status{State: inventory.Discovered},
			}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.restart()
	return r
}

// disagreement returns where servers and devices don't agree, or "".
func disagreement(servers []*inventory.Server, devices map[string]string) string {
	holder := map[string]string{}
	for _, s := range servers {
		used := slices.Contains([]inventory.State{inventory.Provisioning, inventory.InUse, inventory.Cleaning}, s.State)
		switch {
		case used != s.Held():
			return fmt.Sprintf("server %s is %s with device %q", s.Name, s.State, s.DeviceID)
		case s.Held() && holder[s.DeviceID] != "":
			return fmt.Sprintf("device %s has servers %s and %s", s.DeviceID, holder[s.DeviceID], s.Name)
		case s.Held() && devices[s.DeviceID] != s.ID:
			return fmt.Sprintf("server %s has device %s, whose server is %q", s.Name, s.DeviceID, devices[s.DeviceID])
		}
		if s.Held() {
			holder[s.DeviceID] = s.Name
		}
	}
	for device, server := range devices {
		if holder[device] == "" {
			return fmt.Sprintf("device %s has server %q, which doesn't know", device, server)
		}
	}
	return ""
}

// TestOneDevicePerServer kills the service at random points of 1,000 random histories and checks
// after every step that servers and devices agree, on both sides of the API and on the hardware.
func TestOneDevicePerServer(t *testing.T) {
	st, sealer := modelStore(t)
	for seed := range 1000 {
		r := newModelRun(t, st, sealer, uint64(seed))
		for range 25 {
			r.check(r.step())
		}
		r.settle()
	}
}

// step does one random thing.
func (r *modelRun) step() string {
	servers, devices := serversAndDevices(r.t, r.s)
	ids := make([]string, 0, len(devices))
	for id := range devices {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	some := func() string {
		if len(ids) == 0 {
			return ""
		}
		return ids[r.random.IntN(len(ids))]
	}
	server := servers[r.random.IntN(len(servers))]
	switch r.random.IntN(9) {
	case 0, 1, 2:
		status, _ := r.call(http.MethodPost, "/projects/"+modelProject+"/devices", `{"hostname":"n","plan":"c3.small.x86","metro":"da","operating_system":"debian_12"}`)
		return fmt.Sprint("create ", status)
	case 3, 4:
		if id := some(); id != "" {
			r.work(id)
		}
		return "reconcile"
	case 5:
		if id := some(); id != "" {
			r.call(http.MethodDelete, "/devices/"+id+"?force_delete=true", "")
			r.work(id)
		}
		return "delete"
	case 6:
		r.restart()
		return "kill"
	case 7:
		_, err := r.s.inspections.reset(r.t.Context(), server.ID)
		if errors.Is(err, errKilled) {
			r.restart()
		}
		return "reset " + server.Name
	default:
		_, _ = r.s.inspections.inspect(r.t.Context(), server.ID)
		return "check " + server.Name
	}
}

// settle deletes everything. No device may be stuck, and no server may be lost.
func (r *modelRun) settle() {
	_, devices := serversAndDevices(r.t, r.s)
	for id := range devices {
		r.call(http.MethodDelete, "/devices/"+id+"?force_delete=true", "")
	}
	for range 100 {
		if _, devices = serversAndDevices(r.t, r.s); len(devices) == 0 {
			break
		}
		for id := range devices {
			r.work(id)
		}
		r.check("settling")
	}
	servers, devices := serversAndDevices(r.t, r.s)
	if len(devices) > 0 {
		r.t.Fatalf("%d devices are stuck", len(devices))
	}
	for _, s := range servers {
		if r.driver.dirty[s.Name] && s.State != inventory.Failed {
			r.t.Fatalf("server %s could not be restored and is %s", s.Name, s.State)
		}
	}
}
