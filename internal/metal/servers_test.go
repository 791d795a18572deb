package metal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/store"
)

// serverDriver is a fake driver whose machines are servers.
type serverDriver struct {
	*fakeDriver
	// problems and unclean are by the name of a server.
	problems map[string][]driver.Problem
	unclean  map[string]error
	cleaned  map[string]int
	// powered are the changes of the power of servers, and powerFails is why they fail.
	powered    []string
	powerFails error
}

func newServerDriver() *serverDriver {
	d := &serverDriver{fakeDriver: newFake(), problems: map[string][]driver.Problem{}, unclean: map[string]error{}, cleaned: map[string]int{}}
	d.networks = driver.Networks{Own: true, Flat: true, Public: netip.MustParsePrefix("192.0.2.240/29")}
	return d
}

func (d *serverDriver) new(_ context.Context, c driver.Config) (driver.Driver, error) {
	d.sink = c.Sink
	return d, nil
}

// Inspect derives the address from the host of the server.
func (d *serverDriver) Inspect(_ context.Context, s driver.Server) (driver.Facts, []driver.Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	facts := driver.Facts{CPUs: 8, MemoryBytes: 32 << 30, Arch: "amd64", Address: netip.PrefixFrom(netip.MustParseAddr(s.SSH.Host), 24), Gateway: netip.MustParseAddr("192.0.2.1")}
	return facts, d.problems[s.Name], nil
}

func (d *serverDriver) Clean(_ context.Context, s driver.Server) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cleaned[s.Name]++
	return d.unclean[s.Name]
}

func (d *serverDriver) PowerServer(_ context.Context, s driver.Server, action driver.ServerPower) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.powered = append(d.powered, s.Name+" "+string(action))
	return d.powerFails
}

func (d *serverDriver) ServerConsole(_ context.Context, s driver.Server, follow bool) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(fmt.Sprintf("log of %s, follow %t", s.Name, follow))), nil
}

func (d *serverDriver) Remove(ctx context.Context, id string) error {
	server, found, err := d.sink.(driver.Inventory).ServerOf(id)
	if err != nil || !found {
		return errors.Join(err, d.fakeDriver.Remove(ctx, id))
	}
	d.mu.Lock()
	err = d.unclean[server.Name]
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.fakeDriver.Remove(ctx, id)
}

func (d *serverDriver) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// serverWorld is a world with an inventory.
type serverWorld struct {
	*world
	driver *serverDriver
}

func newServerWorld(t *testing.T, names ...string) *serverWorld {
	t.Helper()
	d := newServerDriver()
	w := &serverWorld{world: openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: d.new, DriverName: "server"}), driver: d}
	for i, name := range names {
		w.add(entry(name, fmt.Sprintf("192.0.2.%d", 10+i)))
		w.awaitServer(name, inventory.Ready)
	}
	return w
}

// cleanings returns how often a server was restored without its device.
func (w *serverWorld) cleanings(name string) (n int) {
	w.driver.set(func() { n = w.driver.cleaned[name] })
	return n
}

func entry(name, host string) inventory.Entry {
	return inventory.Entry{
		Spec:    inventory.Spec{Name: name, Plan: "c3.small.x86", SSH: &driver.SSH{Host: host, User: "root"}},
		Secrets: driver.Secrets{Password: "hunter2-" + name},
	}
}

// admins sends a request with the administrator's token.
func (w *serverWorld) admins(status int, method, path string, body, out any) {
	w.t.Helper()
	if got := w.call(w.admin, method, path, body, out); got != status {
		w.t.Fatalf("%s %s answered %d, want %d", method, path, got, status)
	}
}

func (w *serverWorld) add(entries ...inventory.Entry) api.ServerImportResult {
	w.t.Helper()
	var out api.ServerImportResult
	w.admins(http.StatusOK, "POST", "/drover/v1/servers", api.ServerImport{Servers: entries}, &out)
	return out
}

func (w *serverWorld) server(name string) api.Server {
	w.t.Helper()
	var s api.Server
	w.admins(http.StatusOK, "GET", "/drover/v1/servers/"+name, nil, &s)
	return s
}

func (w *serverWorld) awaitServer(name string, state inventory.State) api.Server {
	w.t.Helper()
	var s api.Server
	w.eventually(fmt.Sprintf("server %s is %s", name, state), func() bool {
		s = w.server(name)
		return s.State == state
	})
	return s
}

func TestServersBecomeDevices(t *testing.T) {
	w := newServerWorld(t, "one")
	d := w.create(order("node-1"))
	s := w.server("one")
	if s.State != inventory.Provisioning || s.DeviceID != d.ID {
		t.Fatalf("the server is %s with %q", s.State, s.DeviceID)
	}
	w.awaitState(d.ID, StateProvisioning)
	d = w.device(d.ID)
	if len(d.IPAddresses) != 1 || d.IPAddresses[0].Address != "192.0.2.10" || !d.IPAddresses[0].Public {
		t.Errorf("the device has the addresses %+v", d.IPAddresses)
	}
	w.eventually("the driver has the server and its secrets", func() bool {
		m, found := w.driver.has(d.ID)
		return found && m.Server != nil && m.Server.Name == "one" && m.Server.Secrets.Password == "hunter2-one"
	})
	if message := w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("node-2")); !strings.Contains(message, "There aren't available servers") {
		t.Errorf("a second device was answered %q", message)
	}
	if err := w.s.Report(d.ID, driver.Event{Phase: driver.Running}); err != nil {
		t.Fatal(err)
	}
	w.awaitServer("one", inventory.InUse)
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID, nil, nil)
	w.awaitDeleted(d.ID)
	if s := w.server("one"); s.State != inventory.Ready || s.DeviceID != "" {
		t.Errorf("afterwards the server is %s with %q", s.State, s.DeviceID)
	}
	w.create(order("node-3"))
}

func TestSecretsOfServersStayInMetal(t *testing.T) {
	w := newServerWorld(t, "one")
	for _, path := range []string{"/drover/v1/servers", "/drover/v1/servers/one"} {
		var raw any
		w.admins(http.StatusOK, "GET", path, nil, &raw)
		if text := fmt.Sprint(raw); strings.Contains(text, "hunter2") || strings.Contains(text, "sealed") {
			t.Errorf("%s shows secrets: %s", path, text)
		}
		if got := w.call(w.token, "GET", path, nil, nil); got != http.StatusForbidden {
			t.Errorf("%s answered %d to the token of a project", path, got)
		}
	}
	data, err := os.ReadFile(w.home.storeFile())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "hunter2") {
		t.Error("the store has a password in plain text")
	}
	if info, err := os.Stat(w.home.sealFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v: %v", info.Mode(), err)
	}
}

func TestImportIsAllOrNothing(t *testing.T) {
	w := newServerWorld(t, "one")
	bad := entry("three", "192.0.2.10")
	out := w.add(entry("two", "192.0.2.20"), bad)
	if len(out.Problems) != 1 || out.Problems[0].Index != 1 || !strings.Contains(out.Problems[0].Message, `is that of server "one"`) {
		t.Errorf("got the problems %+v", out.Problems)
	}
	if got := w.call(w.admin, "GET", "/drover/v1/servers/two", nil, nil); got != http.StatusNotFound {
		t.Errorf("a server of a rejected import answered %d", got)
	}
	var dry api.ServerImportResult
	w.admins(http.StatusOK, "POST", "/drover/v1/servers", api.ServerImport{Servers: []inventory.Entry{entry("two", "192.0.2.20")}, DryRun: true}, &dry)
	if len(dry.Added) != 1 || len(dry.Problems) > 0 {
		t.Errorf("a dry run reports %+v", dry)
	}
	if got := w.call(w.admin, "GET", "/drover/v1/servers/two", nil, nil); got != http.StatusNotFound {
		t.Error("a dry run added a server")
	}
	// A file without a password keeps the one that is known.
	again := entry("one", "192.0.2.10")
	again.Secrets = driver.Secrets{}
	if out := w.add(again); len(out.Updated) != 1 {
		t.Errorf("got %+v", out)
	}
	if s := w.server("one"); !s.HasSecrets {
		t.Error("an import without passwords removed one")
	}
}

func TestServersWithProblemsAreNotUsed(t *testing.T) {
	w := newServerWorld(t)
	full := driver.Problem{Check: "disk", Message: "the disk is full", Remedy: "delete files"}
	w.driver.set(func() { w.driver.problems["one"] = []driver.Problem{full} })
	w.add(entry("one", "192.0.2.10"))
	w.eventually("the problem is recorded", func() bool { return len(w.server("one").Problems) == 1 })
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("node-1"))
	w.driver.set(func() { delete(w.driver.problems, "one") })
	var s api.Server
	w.admins(http.StatusOK, "POST", "/drover/v1/servers/one/check", nil, &s)
	if s.State != inventory.Ready {
		t.Fatalf("after the repair the server is %s: %+v", s.State, s.Problems)
	}
	w.create(order("node-1"))
}

func TestUncleanServersAreNeverHandedOutAgain(t *testing.T) {
	w := newServerWorld(t, "one")
	d := w.create(order("node-1"))
	w.driver.set(func() {
		w.driver.unclean["one"] = &driver.UncleanError{Problem: driver.Problem{Check: "clean", Message: "/var/lib/etcd is still there", Remedy: "remove it"}}
	})
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
	w.awaitDeleted(d.ID)
	if s := w.server("one"); s.State != inventory.Failed || len(s.Problems) != 1 || s.Problems[0].Remedy != "remove it" {
		t.Fatalf("the server is %s: %+v", s.State, s.Problems)
	}
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("node-2"))
	w.admins(http.StatusOK, "POST", "/drover/v1/servers/one/check", nil, nil)
	if s := w.server("one"); s.State != inventory.Failed {
		t.Errorf("a check alone made it %s", s.State)
	}
	w.admins(http.StatusUnprocessableEntity, "POST", "/drover/v1/servers/one/reset", nil, nil)
	w.driver.set(func() { delete(w.driver.unclean, "one") })
	w.admins(http.StatusOK, "POST", "/drover/v1/servers/one/reset", nil, nil)
	w.awaitServer("one", inventory.Ready)
	if w.driver.cleaned["one"] != 2 {
		t.Errorf("the server was cleaned %d times", w.driver.cleaned["one"])
	}
}

func TestUnreachableServersDoNotKeepTheirDevice(t *testing.T) {
	w := newServerWorld(t, "one")
	d := w.create(order("node-1"))
	w.driver.set(func() { w.driver.unclean["one"] = errors.New("connection refused") })
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
	w.awaitServer("one", inventory.Cleaning)
	if got := w.call(w.token, "GET", "/devices/"+d.ID, nil, nil); got != http.StatusOK {
		t.Errorf("the device of an unreachable server answered %d at once", got)
	}
	id := w.server("one").ID
	if _, err := w.s.changeServer(id, func(s *inventory.Server) error {
		s.Since = time.Now().Add(-cleanTimeout)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.awaitDeleted(d.ID)
	if s := w.server("one"); s.State != inventory.Failed || !strings.Contains(s.Problems[0].Message, "connection refused") {
		t.Errorf("the server is %s: %+v", s.State, s.Problems)
	}
}

func TestReservationsSelectServers(t *testing.T) {
	w := newServerWorld(t, "one", "two")
	s := w.server("two")
	e := inventory.Entry{Spec: s.Spec}
	e.Project = w.project
	w.admins(http.StatusOK, "PUT", "/drover/v1/servers/two", e, nil)
	var all api.HardwareReservations
	w.must(http.StatusOK, "GET", "/projects/"+w.project+"/hardware-reservations", nil, &all)
	if len(all.HardwareReservations) != 1 || all.HardwareReservations[0].ID != s.ID {
		t.Fatalf("the project has the reservations %+v", all.HardwareReservations)
	}
	w.create(order("on-demand"))
	w.refused(http.StatusUnprocessableEntity, "POST", "/projects/"+w.project+"/devices", order("no-other"))
	reserved := order("reserved")
	reserved["metro"] = "local"
	reserved["hardware_reservation_id"] = s.ID
	d := w.create(reserved)
	if got := w.server("two"); got.DeviceID != d.ID {
		t.Errorf("the reserved server has device %q", got.DeviceID)
	}
}

func TestCapacityIsThatOfTheInventory(t *testing.T) {
	w := newServerWorld(t, "one", "two", "three")
	w.create(order("node-1"))
	e := inventory.Entry{Spec: w.server("three").Spec}
	e.Drained = true
	w.admins(http.StatusOK, "PUT", "/drover/v1/servers/three", e, nil)
	var out api.CapacityCheck
	ask := api.CapacityCheck{Servers: []api.CapacityServer{
		{Plan: "c3.small.x86", Metro: "da", Quantity: 1}, {Plan: "c3.small.x86", Metro: "am", Quantity: 1}, {Plan: "m3.large.x86", Metro: "da", Quantity: 1},
	}}
	w.must(http.StatusOK, "POST", "/capacity/metros", ask, &out)
	if got := []bool{out.Servers[0].Available, out.Servers[1].Available, out.Servers[2].Available}; !got[0] || got[1] || got[2] {
		t.Errorf("got %v, want one server of the plan, wherever it is", got)
	}
}

func TestEditAndRemoveServers(t *testing.T) {
	w := newServerWorld(t, "one")
	d := w.create(order("node-1"))
	moved := entry("one", "192.0.2.99")
	w.admins(http.StatusUnprocessableEntity, "PUT", "/drover/v1/servers/one", moved, nil)
	w.admins(http.StatusUnprocessableEntity, "DELETE", "/drover/v1/servers/one", nil, nil)
	w.admins(http.StatusUnprocessableEntity, "POST", "/drover/v1/servers/one/reset", nil, nil)
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
	w.awaitDeleted(d.ID)
	w.admins(http.StatusUnprocessableEntity, "DELETE", "/drover/v1/servers/one?wipe=disks", nil, nil)
	w.admins(http.StatusUnprocessableEntity, "POST", "/drover/v1/servers/one/reset", api.ServerReset{Wipe: "disks"}, nil)
	if n := w.cleanings("one"); n != 0 {
		t.Errorf("a wipe that is not supported cleaned the server %d times", n)
	}
	w.admins(http.StatusNoContent, "DELETE", "/drover/v1/servers/one?wipe=kubernetes", nil, nil)
	if n := w.cleanings("one"); n != 1 {
		t.Errorf("the server was cleaned %d times before it was removed", n)
	}
	w.admins(http.StatusNotFound, "GET", "/drover/v1/servers/one", nil, nil)
}

func TestOtherDriversHaveNoInventory(t *testing.T) {
	w := newWorld(t)
	var e api.Error
	if got := w.call(w.admin, "GET", "/drover/v1/servers", nil, &e); got != http.StatusUnprocessableEntity || !strings.Contains(e.Errors[0], "--driver server") {
		t.Errorf("got %d %v", got, e.Errors)
	}
}

func TestHostKeysArePinnedOnce(t *testing.T) {
	w := newServerWorld(t, "one")
	id := w.server("one").ID
	for _, tt := range []struct {
		key string
		ok  bool
	}{{"ssh-ed25519 AAAAfirst", true}, {"ssh-ed25519 AAAAfirst comment", true}, {"ssh-ed25519 AAAAsecond", false}} {
		if err := w.s.PinHostKey(id, "192.0.2.10", tt.key); (err == nil) != tt.ok {
			t.Errorf("pinning %q: %v", tt.key, err)
		}
	}
	if got := w.server("one").SSH.HostKey; got != "ssh-ed25519 AAAAfirst" {
		t.Errorf("the pinned key is %q", got)
	}
}

func TestPurgeRemovesTheKeyOfTheInventory(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), "metal")}
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := inventory.OpenSealer(h.sealFile()); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
}

// serversAndDevices reads both sides of every claim.
func serversAndDevices(t *testing.T, s *Server) (servers []*inventory.Server, devices map[string]string) {
	t.Helper()
	devices = map[string]string{}
	err := s.store.View(func(tx *store.Tx) (err error) {
		if servers, err = tx.AllServers(); err != nil {
			return err
		}
		return tx.Devices().Each(func(d *store.Device) error {
			devices[d.ID] = d.ServerID
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return servers, devices
}
