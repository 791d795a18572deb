package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver/local"
)

// metalStatus is the metal part of `drover status -o json`.
type metalStatus struct {
	PacketAPI string
	Metal     *struct {
		Running     bool
		Driver, URL string
		Project     string
		PID         int
		MemoryBytes int64
		Machines    *int
	}
}

func (p *plane) metalStatus() metalStatus {
	p.t.Helper()
	r := p.drover("status", "-o", "json")
	var s metalStatus
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		p.t.Fatalf("reading status: %v:\n%s%s", err, r.stdout, r.stderr)
	}
	return s
}

// withMetal removes the metal service of a plane when t ends.
func withMetal(t *testing.T, p *plane) *plane {
	t.Helper()
	t.Cleanup(func() { p.must("metal", "purge", "--yes") })
	return p
}

// managerVariable returns an environment variable of the manager.
func (p *plane) managerVariable(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.status().component("manager").PID))
	if err != nil {
		p.t.Fatal(err)
	}
	value := ""
	for line := range bytes.SplitSeq(data, []byte{0}) {
		if v, ok := bytes.CutPrefix(line, []byte(name+"=")); ok {
			value = string(v) // the last one wins
		}
	}
	return value
}

// metals returns the processes that serve the plane's metal home.
func (p *plane) metals() []int {
	var out []int
	for _, pid := range processes(p.metalHome()) {
		if data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && bytes.Contains(data, []byte("\x00serve\x00")) {
			out = append(out, pid)
		}
	}
	return out
}

// TestMetalBesideAPlane follows the metal service through the life of a plane that uses it.
func TestMetalBesideAPlane(t *testing.T) {
	t.Parallel()
	withMetal(t, newPlane(t)).follow(
		step{"a host without machine support has a plane without machines", testNoMachineSupport},
		step{"a configured Packet API is used", testConfiguredPacketAPI},
		step{"metal joins a plane that is up", testMetalJoins},
		step{"another driver is refused", testOtherDriver},
		step{"a metal that was stopped or killed is started again", testMetalAgain},
		step{"metal outlives the plane", testMetalOutlives},
		step{"a metal that was removed is replaced", testMetalReplaced},
		step{"purging both leaves nothing", testPurgeBoth},
	)
}

// testNoMachineSupport removes what local machines require.
func testNoMachineSupport(t *testing.T, p *plane) {
	bare := p.with("DROVER_NODE_DIR=" + t.TempDir())
	why := "machine programs (containerd, runc, …) not found"
	if os.Geteuid() != 0 {
		why = "local machines need root"
	}
	bare.refused(why, "up", "--metal", "local")
	r := bare.must("up", "--metal", "auto")
	if !strings.Contains(r.stderr, "local machines are not available: "+why) || !strings.Contains(r.stderr, "is ready after") {
		t.Errorf("up says:\n%s", r.stderr)
	}
	if again := bare.must("up", "--metal", "auto"); !strings.Contains(again.stderr, "local machines are not available: ") {
		t.Errorf("a second up says:\n%s", again.stderr)
	}
	if s := p.metalStatus(); s.PacketAPI != "" || s.Metal != nil || len(p.metals()) > 0 {
		t.Errorf("status says %+v, metals %v", s, p.metals())
	}
}

func testConfiguredPacketAPI(t *testing.T, p *plane) {
	const url = "http://127.0.0.1:1/metal/v1"
	p.with("METAL_API_URL="+url, "PACKET_API_KEY=secret").must("up", "--metal", "auto")
	if s := p.metalStatus(); s.PacketAPI != url || s.Metal != nil {
		t.Errorf("status says %+v", s)
	}
	if table := p.must("status").stdout; !strings.Contains(table, "Packet API  "+url) {
		t.Errorf("status does not show the API:\n%s", table)
	}
}

func testMetalJoins(t *testing.T, p *plane) {
	r := p.must("up", "--metal", "memory")
	if !strings.Contains(r.stderr, "Started metal with memory machines") || !strings.Contains(r.stderr, "export PROJECT_ID=") {
		t.Errorf("up says:\n%s", r.stderr)
	}
	usesMetal(t, p)
	s := p.metalStatus()
	if s.Metal.Driver != "memory" || s.Metal.MemoryBytes == 0 || s.Metal.Machines == nil || *s.Metal.Machines != 0 {
		t.Errorf("status says %+v", s.Metal)
	}
	if table := p.must("status").stdout; !strings.Contains(table, "Running, driver memory, 0 machines") {
		t.Errorf("status does not show metal:\n%s", table)
	}
	before := p.status().pids()
	p.must("up", "--metal", "memory")
	p.must("up", "--metal", "auto")
	if after := p.status().pids(); fmt.Sprint(before) != fmt.Sprint(after) || len(p.metals()) != 1 {
		t.Errorf("another up changed processes from %v to %v, with metals %v", before, after, p.metals())
	}
}

// usesMetal checks that the manager uses the metal service.
func usesMetal(t *testing.T, p *plane) {
	t.Helper()
	s := p.metalStatus()
	if s.Metal == nil || !s.Metal.Running || s.PacketAPI != s.Metal.URL {
		t.Fatalf("the plane uses %q beside metal %+v", s.PacketAPI, s.Metal)
	}
	token, err := metal.Home{Dir: p.metalHome()}.Token(s.Metal.Project)
	if err != nil {
		t.Fatal(err)
	}
	if p.managerVariable("METAL_API_URL") != s.Metal.URL || p.managerVariable("PACKET_API_KEY") != token {
		t.Error("the manager was started with something else")
	}
}

func testOtherDriver(t *testing.T, p *plane) {
	p.refused(`has machines of driver "memory", not "local": use that driver`, "up", "--metal", "local")
	if len(p.metals()) != 1 {
		t.Errorf("metals %v", p.metals())
	}
}

func testMetalAgain(t *testing.T, p *plane) {
	before := p.metalStatus()
	p.must("metal", "stop")
	if len(p.metals()) != 0 {
		t.Errorf("processes %v are left", p.metals())
	}
	if s := p.status(); s.Phase != "Ready" {
		t.Errorf("a plane without its metal is %s", s.Phase)
	}
	if table := p.must("status").stdout; !strings.Contains(table, "Stopped, driver memory") {
		t.Errorf("status does not show that metal is stopped:\n%s", table)
	}
	p.must("up", "--metal", "auto")
	kill(t, p.metalStatus().Metal.PID)
	p.must("up", "--metal", "auto")
	usesMetal(t, p)
	after := p.metalStatus()
	if after.PacketAPI != before.PacketAPI || after.Metal.Project != before.Metal.Project {
		t.Errorf("metal moved from %+v to %+v", before, after)
	}
}

func testMetalOutlives(t *testing.T, p *plane) {
	pids := p.metals()
	r := p.must("down")
	if !strings.Contains(r.stderr, "Metal keeps running with 0 machines: `drover metal stop` stops it") {
		t.Errorf("down says:\n%s", r.stderr)
	}
	p.must("down", "--purge")
	if after := p.metals(); fmt.Sprint(after) != fmt.Sprint(pids) {
		t.Errorf("metals %v became %v", pids, after)
	}
	p.must("up", "--metal", "auto")
	usesMetal(t, p)
}

func testMetalReplaced(t *testing.T, p *plane) {
	before := p.metalStatus().Metal.Project
	p.refused("with 0 machines requires confirmation: use --yes", "metal", "purge")
	p.must("metal", "purge", "--yes")
	if _, err := os.Stat(p.metalHome()); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	p.must("up", "--metal", "memory")
	usesMetal(t, p)
	if after := p.metalStatus().Metal.Project; after == before {
		t.Error("a new metal has an old project")
	}
}

func testPurgeBoth(t *testing.T, p *plane) {
	p.refused("use --yes", "down", "--purge", "--metal")
	if s := p.status(); s.Phase != "Ready" {
		t.Errorf("a refused purge left the plane %s", s.Phase)
	}
	p.must("down", "--purge", "--metal", "--yes")
	for _, dir := range []string{p.home, p.metalHome()} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
	if left := processes(p.home); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// TestPurgingLocalMachinesLeavesNothing creates a real machine and checks that a purge leaves
// nothing in the kernel.
func TestPurgingLocalMachinesLeavesNothing(t *testing.T) {
	t.Parallel()
	p := &plane{t: t, home: filepath.Join(t.TempDir(), "home")}
	if err := local.Usable(p.metalHome()); err != nil {
		t.Skip(err)
	}
	sum := sha256.Sum256([]byte(filepath.Join(p.metalHome(), "driver-local")))
	f := &fleet{plane: p, id: hex.EncodeToString(sum[:4])}
	serve := p.command("metal", "serve", "--driver", "local")
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve.Wait() }()
	withMetal(t, p)
	f.addMachine("web-1")
	p.refused("with 1 machine requires confirmation", "metal", "purge")
	p.must("metal", "stop")
	if err := <-served; err != nil {
		t.Errorf("metal ended with %v", err)
	}
	if left := f.leftovers(); len(left["processes"]) == 0 || len(left["interfaces"]) == 0 {
		t.Errorf("a machine does not outlive metal: %v", left)
	}
	p.must("metal", "purge", "--yes")
	for what, left := range f.leftovers() {
		if len(left) > 0 {
			t.Errorf("%s outlive metal: %v", what, left)
		}
	}
	if left := processes(p.home); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// addMachine orders a machine and waits until it is running.
func (f *fleet) addMachine(name string) {
	f.t.Helper()
	home := metal.Home{Dir: f.metalHome()}
	f.await("metal serves", func() bool { return f.drover("metal", "status").code == 0 })
	e, err := home.ReadEndpoint()
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := admin.Open(home)
	if err != nil {
		f.t.Fatal(err)
	}
	var d api.Device
	body := map[string]any{"hostname": name, "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_24_04"}
	if err := c.Do(f.t.Context(), http.MethodPost, "/projects/"+e.Project+"/devices", body, &d); err != nil {
		f.t.Fatal(err)
	}
	f.await("the machine runs", func() bool { return strings.Contains(f.must("machine", "list").stdout, "active") })
}
