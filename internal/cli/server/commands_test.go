package server

import (
	"bytes"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	driverserver "github.com/drover-dev/drover/internal/metal/driver/server"
)

// shell runs commands against a metal service with the driver for servers.
type shell struct {
	t    *testing.T
	home metal.Home
}

func newShell(t *testing.T) *shell {
	t.Helper()
	h := metal.Home{Dir: filepath.Join(t.TempDir(), "metal")}
	s, err := metal.Open(t.Context(), metal.Options{Home: h, Driver: driverserver.New, DriverName: "server"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.WriteEndpoint(metal.Endpoint{URL: web.URL, AdminToken: h.AdminTokenFile(), Driver: "server", Process: process.Identify(os.Getpid())}); err != nil {
		t.Fatal(err)
	}
	return &shell{t, h}
}

// run returns what a command prints, and its error.
func (s *shell) run(args ...string) (out string, err error) {
	s.t.Helper()
	var both bytes.Buffer
	cmd := NewCommand(&ui.IO{In: strings.NewReader("hunter2\n"), Out: &both, Err: &both})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--metal-home", s.home.Dir))
	err = cmd.ExecuteContext(s.t.Context())
	return both.String(), err
}

// must runs a command that succeeds and prints something.
func (s *shell) must(want string, args ...string) {
	s.t.Helper()
	out, err := s.run(args...)
	if err != nil || !strings.Contains(out, want) {
		s.t.Fatalf("%v printed %q, %v; want %q", args, out, err, want)
	}
}

// fails runs a command that fails with a message.
func (s *shell) fails(want string, args ...string) {
	s.t.Helper()
	out, err := s.run(args...)
	if err == nil || !strings.Contains(out+err.Error(), want) {
		s.t.Fatalf("%v printed %q, %v; want %q", args, out, err, want)
	}
}

// closedPort returns a port at which nothing listens.
func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestCommandsManageTheInventory(t *testing.T) {
	s := newShell(t)
	target := fmt.Sprintf("root@127.0.0.1:%d", closedPort(t))
	s.fails("no SSH server answers", "add", "node-1", "--ssh", target, "--password-stdin", "--label", "rack=a")
	s.fails(`server "node-1" exists`, "add", "node-1", "--ssh", target, "--password-stdin")
	s.fails("is not a host name", "add", "node_2", "--ssh", "root@192.0.2.7", "--password-stdin")
	s.must("node-1", "list")
	s.must("no SSH server answers", "describe", "node-1")
	s.must("node-1 changed", "edit", "node-1", "--plan", "c3.small.x86")
	s.must(`"effectivePlan": "c3.small.x86"`, "describe", "node-1", "-o", "json")
	s.fails("is not in the catalog", "edit", "node-1", "--plan", "huge")
	s.must("node-1 changed", "drain", "node-1")
	s.must("Drained", "list", "--label", "rack=a")
	s.must("node-1 changed", "drain", "node-1", "--undo")
	if out, err := s.run("describe", "node-1", "-o", "yaml"); err != nil || strings.Contains(out, "hunter2") || strings.Contains(out, "Drained") {
		t.Errorf("got %q, %v", out, err)
	}
	s.fails("no SSH server answers", "check", "node-1")
	s.fails("no SSH server answers", "reset", "node-1")
	s.fails("erase the disk from other media", "reset", "node-1", "--wipe", "disks")
	s.fails("power off requires confirmation: use --yes", "power", "off", "node-1")
	s.fails("no SSH server answers", "power", "off", "node-1", "--yes")
	s.fails("press its power button", "power", "on", "node-1")
	s.fails("no SSH server answers", "console", "node-1", "--follow")
	s.fails("no SSH server answers", "remove", "node-1", "--wipe", "kubernetes")
	s.fails("erase the disk from other media", "remove", "node-1", "--wipe", "disks")
	s.must("address: 127.0.0.1", "export", "--format", "k0sctl")
	s.must("node-1 removed", "remove", "node-1")
	s.fails("not found", "describe", "node-1")
	s.fails("the inventory is empty", "export")
}

func TestImportAndExport(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "hardware.csv")
	header := "hostname,bmc_ip,bmc_username,bmc_password,mac,ip_address,netmask,gateway,nameservers,labels,disk\n"
	one := "cp-1,10.10.44.1,root,calvin,CC:48:3A:00:00:01,192.0.2.2,255.255.255.0,192.0.2.1,8.8.8.8,type=cp,/dev/sda\n"
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(header + one + strings.ReplaceAll(one, "cp-1", "cp-2"))
	s.fails("address 192.0.2.2 is also in line 2", "import", file)
	write(header + strings.ReplaceAll(one, "calvin", ""))
	s.fails("line 2 (cp-1): bmc_ip, bmc_username and bmc_password must be set together", "import", file)
	write(header + one)
	s.must("1 server would be imported: 1 new, 0 updated", "import", file, "--dry-run")
	s.fails("the inventory is empty", "export")
	s.must("1 server imported: 1 new, 0 updated", "import", file)
	out, err := s.run("export", "--format", "csv")
	if err != nil || !strings.Contains(out, "cp-1,10.10.44.1,root,,CC:48:3A:00:00:01,192.0.2.2") {
		t.Fatalf("got %q, %v", out, err)
	}
	write(out)
	s.must("1 server imported: 0 new, 1 updated", "import", file)
	s.fails("no such file", "import", file+".missing")
}
