package local

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const greeting = `#cloud-config
write_files:
- path: /etc/greeting
  content: hello
  permissions: '0640'
- path: /etc/systemd/system/beat.service
  content: |
    [Service]
    Environment=WORD=beat
    ExecStart=/bin/sh -c 'while true; do echo ${WORD}; sleep 1; done'
    Restart=always
    [Install]
    WantedBy=multi-user.target
runcmd:
- cd /root
- echo ran as $(hostname) > ran
- [systemctl, enable, --now, beat]
ntp:
  enabled: true
`

func TestMachineBootsFromItsUserdata(t *testing.T) {
	f := newFixture(t)
	f.serveMetadata()
	m := f.device("box-1", greeting)
	f.boot(m)

	for _, tt := range []struct{ name, line, want string }{
		{"files are written", "cat /etc/greeting; stat -c ' %a' /etc/greeting", "hello 640"},
		{"commands share a directory", "cat /root/ran", "ran as box-1"},
		{"the first address is on the link", "ip -4 -o addr show eth0 | grep -c " + m.Addresses[0].IP.String() + "/", "1"},
		{"the machine knows its own name", "getent hosts box-1 | head -1 | cut -d' ' -f1", m.Addresses[0].IP.String()},
		{"unknown names are refused at once", "timeout 2 getent hosts nowhere.example; echo $?", "2"},
		{"a unit of the userdata runs", "systemctl is-active beat", "active"},
		{"units have logs", "sleep 0.1; journalctl -u beat -n 1", "beat"},
		{"kubelet waits for kubeadm", "systemctl is-active kubelet", "inactive"},
		{"containerd has the images", "ctr -n k8s.io images ls -q 2>/dev/null | grep -c kube-apiserver", "1"},
		{"the first process is ours", "tr '\\0' ' ' < /proc/1/cmdline | cut -d' ' -f1-2", "drover machine-init"},
		{"the host's mounts can't be seen", "awk '{print $2}' /proc/mounts | grep -c " + f.home, "0"},
		{"metadata is at its old name", "curl -s http://metadata.platformequinix.com/", "for " + m.Addresses[0].IP.String()},
		{"metadata is at its address", "curl -s http://169.254.169.254/", "for " + m.Addresses[0].IP.String()},
		{"Pods are kept away from the metadata service", "nft list table ip drover-guard | grep -c drop", "2"},
		{"the boot is over", "cloud-init status --wait", "status: done"},
	} {
		if got, _ := f.try(m.ID, tt.line); got != tt.want {
			t.Errorf("%s: %q printed %q, want %q", tt.name, tt.line, got, tt.want)
		}
	}
	f.sink.await(t, m.ID, 0, soon, func(e driver.Event) bool { return strings.Contains(e.Message, "ntp: skipped") })
	f.sink.await(t, m.ID, 0, soon, func(e driver.Event) bool { return e.Type == "provisioning.110" && e.Phase == driver.Running })
	if !strings.Contains(f.console(m.ID), "succeeded") {
		t.Errorf("console:\n%s", f.console(m.ID))
	}
	f.awaitNoUserdata(m.ID)
	conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(m.Addresses[0].IP, 22).String(), soon)
	if err != nil {
		t.Fatalf("the host does not reach the machine's SSH server: %v", err)
	}
	conn.Close()
	t.Run("root on it is confined", func(t *testing.T) { testConfinement(t, f, m.ID) })
}

// serveMetadata responds with the client's address, by which metal identifies machines.
func (f *fixture) serveMetadata() {
	f.t.Helper()
	l, err := f.MetadataListener()
	if err != nil {
		f.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprint(w, "for ", host)
	})}
	go server.Serve(l)
	f.t.Cleanup(func() { server.Close() })
}

func TestFailingUserdataIsReported(t *testing.T) {
	f := newFixture(t)
	for name, tt := range map[string]struct{ userdata, want string }{
		"broken YAML":        {"#cloud-config\nruncmd: [", "failed: reading the cloud-config"},
		"a failing script":   {"#!/bin/sh\necho about to fail\nexit 3\n", "about to fail"},
		"an unknown key":     {"#cloud-config\nfrobnicate: 1\nruncmd: [\"true\"]\n", "frobnicate: skipped: unknown key"},
		"a failing kubeadm":  {"#cloud-config\nruncmd:\n- \"false && echo > /run/cluster-api/bootstrap-success.complete\"\n- \"true\"\n", "kubeadm failed"},
		"a missing variable": {"## template: jinja\n#cloud-config\nhostname: '{{ v1.nope }}'\n", "failed: rendering"},
	} {
		t.Run(name, func(t *testing.T) {
			m := f.device("box", tt.userdata)
			if err := f.Ensure(t.Context(), m, driver.On); err != nil {
				t.Fatal(err)
			}
			f.sink.await(t, m.ID, 0, soon, func(e driver.Event) bool { return e.Type == "user-state" && strings.Contains(e.Message, tt.want) })
			if err := f.Remove(t.Context(), m.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMachineSurvivesDriverRestart(t *testing.T) {
	f := newFixture(t)
	f.hostUsers = true // as on a kernel that can't map users
	before := f.hostState()
	m := f.device("box-1", greeting)
	f.boot(m)
	t.Run("root on it is confined", func(t *testing.T) { testConfinement(t, f, m.ID) })
	during := f.hostState()
	p, _ := f.mustMachine(m.ID).process()
	namespaces := namespacesOf(t, p.PID)

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.run(m.ID, "systemctl is-active beat")
	skip := f.sink.count(m.ID)
	f.open(f.home)
	if now, ok := f.mustMachine(m.ID).process(); !ok || now != p {
		t.Fatalf("the machine's process is %+v after a restart of the driver, want %+v", now, p)
	}
	if err := f.Ensure(t.Context(), m, driver.On); err != nil {
		t.Fatal(err)
	}
	f.sink.await(t, m.ID, skip, soon, func(e driver.Event) bool { return e.Phase == driver.Running })

	for range 2 { // Removing a missing machine is not an error.
		if err := f.Remove(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	after := f.hostState()
	for _, what := range []string{"links", "cgroups", "mounts"} {
		if after[what] != before[what] {
			t.Errorf("%s before and after:\n%s\n\n%s", what, before[what], after[what])
		}
	}
	if during["links"] == before["links"] || during["cgroups"] == before["cgroups"] {
		t.Error("the check sees no difference while a machine runs")
	}
	for pid, ns := range allNamespaces(t) {
		if ns == namespaces {
			t.Errorf("process %s is in the machine's namespaces", pid)
		}
	}
	if ids, _ := f.Known(t.Context()); len(ids) > 0 {
		t.Errorf("known machines: %v", ids)
	}
	if exists(filepath.Join(f.machinesDir(), m.ID)) {
		t.Error("the directory is still there")
	}
}

func (f *fixture) mustMachine(id string) *machine {
	f.t.Helper()
	m, err := f.machine(id)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// hostState returns resources that machines of this driver could leak. Other tests on this host
// start machines at the same time.
func (f *fixture) hostState() map[string]string {
	f.t.Helper()
	state := map[string]string{}
	for what, patterns := range map[string][]string{
		"links":   {"/sys/class/net/" + f.bridgeName() + "/brif/*"},
		"cgroups": {"/sys/fs/cgroup/*/" + f.cgroupName() + "/*-*", "/sys/fs/cgroup/" + f.cgroupName() + "/*-*"},
	} {
		for _, pattern := range patterns {
			found, err := filepath.Glob(pattern)
			if err != nil {
				f.t.Fatal(err)
			}
			state[what] += strings.Join(found, "\n")
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, f.home) {
			state["mounts"] += line
		}
	}
	return state
}

func namespacesOf(t *testing.T, pid int) string {
	t.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func allNamespaces(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if ns, err := os.Readlink(link); err == nil {
			all[link] = ns
		}
	}
	return all
}

func TestLeftoversOfAKilledHostAreRemoved(t *testing.T) {
	f := newFixture(t)
	m := f.device("box-1", "")
	f.boot(m)
	p, _ := f.mustMachine(m.ID).process()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// The state after an interrupted deletion: no directory, no process.
	if err := p.stop(0); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(f.machinesDir(), m.ID)); err != nil {
		t.Fatal(err)
	}
	groups := func() int {
		found, _ := filepath.Glob("/sys/fs/cgroup/*/" + f.cgroupName() + "/" + m.ID)
		unified, _ := filepath.Glob("/sys/fs/cgroup/" + f.cgroupName() + "/" + m.ID)
		return len(found) + len(unified)
	}
	if groups() == 0 {
		t.Fatal("nothing was left behind, so this test proves nothing")
	}
	f.open(f.home)
	if n := groups(); n > 0 {
		t.Errorf("%d cgroups are still there", n)
	}
}

func TestPower(t *testing.T) {
	f := newFixture(t)
	m := f.device("box-1", greeting)
	f.boot(m)
	f.run(m.ID, "echo kept > /root/kept")

	skip := f.sink.count(m.ID)
	if err := f.Ensure(t.Context(), m, driver.Off); err != nil {
		t.Fatal(err)
	}
	f.sink.await(t, m.ID, skip, soon, func(e driver.Event) bool { return e.Phase == driver.Stopped })
	if _, ok := f.mustMachine(m.ID).process(); ok {
		t.Fatal("the machine is running, want it off")
	}

	skip = f.sink.count(m.ID)
	if err := f.Ensure(t.Context(), m, driver.On); err != nil {
		t.Fatal(err)
	}
	f.running(m.ID, skip)
	if got := f.run(m.ID, "cat /root/kept"); got != "kept" {
		t.Errorf("a file after power off and on: %q", got)
	}
	f.eventually(m.ID, "systemctl is-active beat", soon)

	skip = f.sink.count(m.ID)
	f.try(m.ID, "reboot")
	f.running(m.ID, skip)
	if got := f.eventually(m.ID, "cat /root/kept", soon); got != "kept" {
		t.Errorf("a file after a reboot from inside: %q", got)
	}

	skip = f.sink.count(m.ID)
	if err := f.Reinstall(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	f.succeeded(m.ID, skip)
	if got, err := f.try(m.ID, "cat /root/kept"); err == nil {
		t.Errorf("a file after a reinstallation: %q", got)
	}

	skip = f.sink.count(m.ID)
	f.try(m.ID, "poweroff")
	f.sink.await(t, m.ID, skip, soon, func(e driver.Event) bool { return e.Phase == driver.Stopped })
}

func (f *fixture) running(id string, skip int) {
	f.t.Helper()
	f.sink.await(f.t, id, skip, soon, func(e driver.Event) bool { return e.Phase == driver.Running })
}

func TestElasticAddressMovesBetweenMachines(t *testing.T) {
	f := newFixture(t)
	script := func(name string) string {
		return "#!/bin/sh\nsetsid socat TCP-LISTEN:7000,fork,reuseaddr SYSTEM:'echo " + name + "' >/dev/null 2>&1 &\n"
	}
	a, b := f.device("a", script("a")), f.device("b", script("b"))
	f.boot(a)
	f.boot(b)
	elastic := f.next.Next()
	assign := func(m driver.Machine, addresses ...netip.Addr) {
		t.Helper()
		if err := f.SetAddresses(t.Context(), m.ID, addresses); err != nil {
			t.Fatal(err)
		}
	}
	assign(a, elastic)
	if got := askTCP(t, elastic); got != "a" {
		t.Fatalf("the address of a is answered by %q", got)
	}
	// Scripts put the address on the loopback of every control plane; only the machine that it is
	// assigned to may respond.
	f.run(b.ID, "ip addr add "+elastic.String()+"/32 dev lo")
	assign(a)
	assign(b, elastic)
	if got := askTCP(t, elastic); got != "b" {
		t.Errorf("the address of b is answered by %q", got)
	}
	assign(b)
	assign(a, elastic)
	if got := askTCP(t, elastic); got != "a" {
		t.Errorf("the address of a is answered by %q, while b has it on its loopback", got)
	}

	skip := f.sink.count(a.ID)
	if err := f.Ensure(t.Context(), a, driver.Off); err != nil {
		t.Fatal(err)
	}
	if err := f.Ensure(t.Context(), a, driver.On); err != nil {
		t.Fatal(err)
	}
	f.running(a.ID, skip)
	f.eventually(a.ID, "ip addr show eth0 | grep "+elastic.String(), soon)
}

func askTCP(t *testing.T, ip netip.Addr) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", netip.AddrPortFrom(ip, 7000).String())
		if err == nil {
			answer := make([]byte, 16)
			n, _ := conn.Read(answer)
			conn.Close()
			return strings.TrimSpace(string(answer[:n]))
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitNoUserdata waits until the driver has removed the userdata of a booted machine.
func (f *fixture) awaitNoUserdata(id string) {
	f.t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
		spec, err := guest.ReadSpec(filepath.Join(f.machinesDir(), id))
		if err != nil {
			f.t.Fatal(err)
		}
		if spec.Userdata == nil && spec.Later != nil {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatal("the driver keeps the userdata after the first boot")
		}
	}
}
