package server

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

var now = time.Unix(1_790_000_000, 0)

// good are the answers of a server without problems.
func good() map[string]string {
	return map[string]string{
		"time": strconv.FormatInt(now.Unix()+2, 10), "arch": map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH], "kernel": "6.1.0-18-amd64",
		"os_id": "debian", "os_version": `"12"`, "os": `"Debian GNU/Linux 12 (bookworm)"`, "systemctl": "yes", "cpus": "4", "memory_kib": "8145000",
		"disk_kib": "104857600", "free_kib": "94371840", "link": "eno1", "gateway": "192.168.1.1", "address": "192.168.1.11/24", "mac": "ac:1f:6b:00:00:01",
	}
}

func script(change map[string]string) string {
	all := good()
	maps.Copy(all, change)
	var out strings.Builder
	for key, value := range all {
		for part := range strings.SplitSeq(value, "|") {
			out.WriteString(key + "=" + part + "\n")
		}
	}
	return out.String()
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]string
		check  string
		want   string
	}{
		"a good server":                 {nil, "", ""},
		"a distribution with no number": {map[string]string{"os_id": "arch", "os_version": ""}, "", ""},
		"no systemd":                    {map[string]string{"systemctl": ""}, "os", "there is no systemd"},
		"an old Debian":                 {map[string]string{"os_version": "11"}, "os", "is too old"},
		"an old Ubuntu":                 {map[string]string{"os_id": "ubuntu", "os_version": "20.04"}, "os", "is too old"},
		"another processor":             {map[string]string{"arch": "riscv64"}, "arch", "the server is riscv64"},
		"a clock of yesterday":          {map[string]string{"time": strconv.FormatInt(now.Unix()-86400, 10)}, "clock", "differs from that of this host by -24h0m0s"},
		"a clock of tomorrow":           {map[string]string{"time": strconv.FormatInt(now.Unix()+86400, 10)}, "clock", "24h0m0s"},
		"no default route":              {map[string]string{"gateway": "", "link": ""}, "network", "there is no default route"},
		"a full disk":                   {map[string]string{"free_kib": "1024"}, "disk", "0.0 GiB are free"},
		"little memory":                 {map[string]string{"memory_kib": "1024000"}, "memory", "too few"},
		"one CPU":                       {map[string]string{"cpus": "1"}, "memory", "1 CPUs"},
		"swap":                          {map[string]string{"swap": "/dev/sda2|/swap.img"}, "swap", "/dev/sda2, /swap.img"},
		"a kernel without overlay":      {map[string]string{"missing_module": "overlay"}, "modules", "overlay"},
		"a missing program":             {map[string]string{"missing_tool": "nft"}, "tools", "nft"},
		"Docker":                        {map[string]string{"service": "docker|containerd"}, "services", "docker, containerd"},
		"an API server":                 {map[string]string{"listen": "22|6443"}, "ports", "port 6443"},
		"SSH alone":                     {map[string]string{"listen": "22"}, "", ""},
		"another cluster":               {map[string]string{"remnant": "/etc/kubernetes/kubelet.conf"}, "remnants", "/etc/kubernetes/kubelet.conf"},
		"another device":                {map[string]string{"device": "d1", "remnant": "/etc/kubernetes/kubelet.conf"}, "remnants", "still device d1"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, problems := judge(parseFacts(script(tt.change)), "node-1", now)
			if tt.check == "" {
				if len(problems) > 0 {
					t.Errorf("got %+v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Check != tt.check || !strings.Contains(problems[0].Message, tt.want) {
				t.Fatalf("got %+v, want %s: %s", problems, tt.check, tt.want)
			}
			if p := problems[0]; p.Remedy == "" || strings.Contains(p.Remedy, "NAME") {
				t.Errorf("the remedy is %q", p.Remedy)
			}
			if facts.Kernel == "" {
				t.Error("a server with a problem has no facts")
			}
		})
	}
}

func TestFacts(t *testing.T) {
	f := parseFacts(script(nil)).facts()
	if f.Arch != runtime.GOARCH || f.OS != "Debian GNU/Linux 12 (bookworm)" || f.MemoryBytes != 8145000<<10 || f.Address.String() != "192.168.1.11/24" || f.Gateway.String() != "192.168.1.1" || f.Link != "eno1" {
		t.Errorf("got %+v", f)
	}
}

// TestTheScriptAnswersOnThisHost runs the real script, which must work with any shell of POSIX.
func TestTheScriptAnswersOnThisHost(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "sh", "-c", inspectScript).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a := parseFacts(string(out))
	for _, key := range []string{"time", "arch", "kernel", "cpus", "memory_kib", "disk_kib", "free_kib"} {
		if a.get(key) == "" {
			t.Errorf("no %s in:\n%s", key, out)
		}
	}
	if f := a.facts(); f.MemoryBytes < 1<<28 || f.DiskBytes < f.FreeDiskBytes || f.CPUs != runtime.NumCPU() {
		t.Errorf("got %+v", f)
	}
	if strings.Contains(string(out), "not found") || slices.Contains(a["missing_tool"], "umount") {
		t.Errorf("the script complains:\n%s", out)
	}
}

// TestProvisionedServersAreLeftAlone restarts metal with a server that is provisioned. Nothing
// connects to it.
func TestProvisionedServersAreLeftAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connected := make(chan struct{}, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			connected <- struct{}{}
		}
	}()
	sink, home := newMetal(), t.TempDir()
	s := driver.Server{ID: "s1", Name: "one", Secrets: driver.Secrets{Password: "x"}, SSH: driver.SSH{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "root"}}
	m := sink.device(s, "v1.36.3", "")
	elastic := []netip.Addr{netip.MustParseAddr("192.0.2.240")}
	d := openDriver(t, home, sink)
	for name, content := range map[string]string{startedFile: "", doneFile: "", elasticFile: textOf(elastic)} {
		if err := d.machine(m.ID).mark(name, content); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := errors.Join(d.Ensure(t.Context(), m, driver.On), d.SetAddresses(t.Context(), m.ID, elastic)); err != nil {
			t.Fatal(err)
		}
		sink.await(t, m.ID, soon, func(e driver.Event) bool { return e.Phase == driver.Running })
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = openDriver(t, home, sink)
	}
	select {
	case <-connected:
		t.Fatal("metal connected to a server that nothing has to change")
	default:
	}
	if err := d.SetAddresses(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	<-connected // Other addresses need a connection.
}
