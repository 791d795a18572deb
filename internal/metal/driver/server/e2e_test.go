package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/crypto/ssh"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
)

// TestMain lets the test binary be local machines, which are the servers of these tests, and the
// agent on them.
func TestMain(m *testing.M) {
	if code, ok := local.Main(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := agent.Main(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// metal is the sink and the inventory of a driver, with everything in memory.
type metal struct {
	mu      sync.Mutex
	servers map[string]driver.Server
	events  map[string][]driver.Event
	change  chan struct{}
}

func newMetal() *metal {
	return &metal{servers: map[string]driver.Server{}, events: map[string][]driver.Event{}, change: make(chan struct{})}
}

func (m *metal) Report(id string, e driver.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events[id] = append(m.events[id], e)
	close(m.change)
	m.change = make(chan struct{})
	return nil
}

func (m *metal) ServerOf(id string) (driver.Server, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.servers[id]
	return s, ok, nil
}

func (m *metal) PinHostKey(_, _, key string) error {
	if !strings.HasPrefix(key, "ssh-") && !strings.HasPrefix(key, "ecdsa-") {
		return errors.New("no key")
	}
	return nil
}

func (m *metal) await(t *testing.T, id string, timeout time.Duration, match func(driver.Event) bool) driver.Event {
	t.Helper()
	deadline := time.After(timeout)
	for {
		m.mu.Lock()
		events, change := m.events[id], m.change
		m.mu.Unlock()
		for _, e := range events {
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

// soon is a timeout that is generous on a busy host.
const soon = 5 * time.Minute

// fleet are servers that are local machines of a home of their own. Only SSH leads to them.
type fleet struct {
	t     *testing.T
	local driver.Driver
	sink  *metal
	key   string // file
	line  string // of authorized_keys
	next  netip.Addr
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("makes machines: left out of short runs")
	}
	if os.Geteuid() != 0 {
		t.Skip("local machines need root")
	}
	f := &fleet{t: t, sink: newMetal(), key: filepath.Join(t.TempDir(), "id")}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	f.line = string(ssh.MarshalAuthorizedKey(public))
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.key, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: a machine that can't be removed must be reported as a failure of the driver.
	home, err := os.MkdirTemp("", "drover-servers-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	f.local, err = local.New(t.Context(), driver.Config{Home: home, Sink: f.sink, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if node.IsMissing(err) {
		os.RemoveAll(home)
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.next = f.local.Networks().Public.Masked().Addr().Next()
	t.Cleanup(func() {
		ids, _ := f.local.Known(context.Background())
		for _, id := range ids {
			if err := f.local.Remove(context.Background(), id); err != nil {
				t.Error(err)
			}
		}
		if err := f.local.Close(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(home)
	})
	return f
}

// bare removes what makes a local machine a node, so that it is an ordinary server.
const bare = `#cloud-config
runcmd:
- systemctl disable --now containerd kubelet drover-endpoint
- rm -rf /usr/lib/systemd/system/containerd.service /usr/lib/systemd/system/kubelet.service /usr/lib/systemd/system/kubelet.service.d
- rm -rf /usr/lib/systemd/system/drover-endpoint.service /usr/lib/drover/kube /usr/lib/drover/containerd.toml /opt/cni
- rm -f /usr/bin/kubelet /usr/bin/kubeadm /usr/bin/kubectl /usr/bin/containerd /usr/bin/containerd-shim-runc-v2 /usr/bin/ctr /usr/bin/runc
- rm -rf /var/lib/containerd/* /run/containerd
`

// start boots a server and returns it as the inventory knows it, without facts.
func (f *fleet) start(name string) driver.Server {
	f.t.Helper()
	f.next = f.next.Next()
	networks := f.local.Networks()
	m := driver.Machine{
		ID: uuid.NewString(), Hostname: name, Plan: "local.medium", OS: "debian_12", MemoryBytes: 4 << 30, CPUs: 2, Userdata: []byte(bare), SSHKeys: []string{f.line},
		Addresses: []driver.Address{{IP: f.next, Prefix: networks.Public, Gateway: networks.Public.Masked().Addr().Next(), Public: true, Management: true}},
	}
	m.Instance.InstanceID = m.ID
	if err := f.local.Ensure(f.t.Context(), m, driver.On); err != nil {
		f.t.Fatal(err)
	}
	e := f.sink.await(f.t, m.ID, soon, func(e driver.Event) bool {
		return strings.HasPrefix(e.Message, "succeeded") || strings.HasPrefix(e.Message, "failed")
	})
	if !strings.HasPrefix(e.Message, "succeeded") {
		f.t.Fatal(e.Message)
	}
	return driver.Server{ID: m.ID, Name: name, SSH: driver.SSH{Host: f.next.String(), User: "root", KeyFile: f.key}}
}

// try runs a command on a server, without SSH.
func (f *fleet) try(s driver.Server, line string) (string, error) {
	var out bytes.Buffer
	err := f.local.(driver.Shell).Enter(f.t.Context(), s.ID, []string{"bash", "-c", line}, driver.Stdio{Out: &out, Err: &out})
	return strings.TrimSpace(out.String()), err
}

func (f *fleet) run(s driver.Server, line string) string {
	f.t.Helper()
	out, err := f.try(s, line)
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func (f *fleet) eventually(s driver.Server, line string) string {
	f.t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(200 * time.Millisecond) {
		out, err := f.try(s, line)
		if err == nil {
			return out
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: still %v\n%s", line, err, out)
		}
	}
}

// cutAfter is how much the first long connection through an unreliable network transfers.
const cutAfter = 32 << 20

// unreliable returns how to reach a server through a network that drops every third connection, and
// cuts the first one that transfers much.
func unreliable(t *testing.T, s driver.Server) driver.SSH {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var cut atomic.Bool
	go func() {
		for n := 1; ; n++ {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", net.JoinHostPort(s.SSH.Host, "22"))
			if err != nil || n%3 == 0 {
				front.Close()
				continue
			}
			both := func() { front.Close(); back.Close() }
			go func() { defer both(); io.Copy(front, back) }()
			go func() {
				defer both()
				if sent, _ := io.CopyN(back, front, cutAfter); sent < cutAfter || cut.CompareAndSwap(false, true) {
					return
				}
				io.Copy(back, front)
			}()
		}
	}()
	access := s.SSH
	access.Host, access.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	return access
}

// openDriver starts the driver on a home.
func openDriver(t *testing.T, home string, sink *metal) *Driver {
	t.Helper()
	d, err := New(t.Context(), driver.Config{Home: home, Sink: sink, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.(*Driver)
}

// direct returns how to reach a server without the unreliable network.
func (f *fleet) direct(s driver.Server) driver.SSH {
	return driver.SSH{Host: s.Facts.Address.Addr().String(), User: "root", KeyFile: f.key}
}

// remove removes a machine as metal does: until it succeeds.
func (m *metal) remove(t *testing.T, d *Driver, id string) {
	t.Helper()
	var unclean *driver.UncleanError
	for range 5 {
		err := d.Remove(t.Context(), id)
		if err == nil {
			return
		}
		if errors.As(err, &unclean) {
			break
		}
		t.Logf("removing: %v", err)
	}
	t.Fatalf("the server is not restored: %v", unclean)
}

// device makes a server the one of a new device.
func (m *metal) device(s driver.Server, kubernetes, userdata string) driver.Machine {
	id := uuid.NewString()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers[id] = s
	return driver.Machine{
		ID: id, Hostname: s.Name + "-node", OS: "debian_12", Userdata: []byte(userdata), Server: &s,
		Addresses: []driver.Address{{IP: s.Facts.Address.Addr(), Prefix: s.Facts.Address.Masked(), Gateway: s.Facts.Gateway, Public: true, Management: true}},
		Instance:  driver.InstanceData{InstanceID: id, LocalHostname: s.Name + "-node"}, Tags: []string{"kubernetes.io/version:" + kubernetes},
	}
}

const token = "abcdef.0123456789abcdef"

// pods configures a Pod network.
const pods = `- path: /etc/cni/net.d/10-pods.conflist
  content: |
    {"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"%s"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
`

func initUserdata(kubernetes, address string) string {
	return "## template: jinja\n#cloud-config\nwrite_files:\n" + fmt.Sprintf(pods, "10.244.0.0/24") + fmt.Sprintf(`- path: /run/kubeadm/kubeadm.yaml
  permissions: '0640'
  content: |
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    kubernetesVersion: %s
    controlPlaneEndpoint: %s:6443
    networking:
      podSubnet: 10.244.0.0/16
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
    bootstrapTokens:
    - token: %s
    nodeRegistration:
      name: '{{ ds.meta_data.local_hostname }}'
      kubeletExtraArgs:
      - name: provider-id
        value: 'equinixmetal://{{ v1.instance_id }}'
runcmd:
- mkdir -p /run/cluster-api
- kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/cluster-api/bootstrap-success.complete
`, kubernetes, address, token)
}

func joinUserdata(address string) string {
	return "#cloud-config\nwrite_files:\n" + fmt.Sprintf(pods, "10.244.1.0/24") +
		fmt.Sprintf("runcmd:\n- kubeadm join %s:6443 --token %s --discovery-token-unsafe-skip-ca-verification\n", address, token)
}

// diagnose shows why a node doesn't start.
const diagnose = `systemctl status kubelet; tail -15 /var/log/units/kubelet.log; tail -15 /var/log/units/containerd.log; tail -5 /var/log/pods/*/*/*.log; ctr -n k8s.io containers ls`

func succeeded(e driver.Event) bool {
	return e.Type == "user-state" && (strings.HasPrefix(e.Message, "succeeded") || strings.HasPrefix(e.Message, "failed"))
}

// oldVersion returns the Kubernetes version before the current one, or the current one where the
// former is not built.
func oldVersion(t *testing.T) string {
	t.Helper()
	old, err := version.ForMinor(version.Minors()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.NewBuilder(old, nil); err != nil {
		t.Logf("upgrades are left out, since Kubernetes %s is not built: %v", old, err)
		return version.Kubernetes
	}
	return old
}

// upgradeBoth upgrades both nodes of a cluster in place. During the first upgrade the agent is
// killed, and metal is restarted: the server goes on by itself.
func (f *fleet) upgradeBoth(sink *metal, home string, d *Driver, one driver.Server, machines ...driver.Machine) *Driver {
	f.t.Helper()
	first := machines[0]
	ended := make(chan error, 1)
	go func() { ended <- d.Upgrade(f.t.Context(), first, version.Kubernetes) }()
	sink.await(f.t, first.ID, soon, func(e driver.Event) bool { return e.Type == "upgrade.103" })
	f.eventually(one, "pkill -9 -f '/opt/drover/agent server-agent upgrade'")
	if err := d.Close(); err != nil {
		f.t.Fatal(err)
	}
	<-ended
	d = openDriver(f.t, home, sink)
	for range 2 { // The second has nothing to do.
		for _, m := range machines {
			if err := d.Upgrade(f.t.Context(), m, version.Kubernetes); err != nil {
				log, _ := f.try(one, diagnose)
				f.t.Fatalf("upgrading %s: %v\n%s", m.Hostname, err, log)
			}
		}
	}
	kubectl := "kubectl --kubeconfig /etc/kubernetes/admin.conf "
	f.eventually(one, kubectl+"get nodes -o jsonpath='{.items[*].status.nodeInfo.kubeletVersion}' | grep -x '"+version.Kubernetes+" "+version.Kubernetes+"'")
	f.eventually(one, kubectl+"wait --for=condition=Ready node --all --timeout=10s")
	if got := f.run(one, "cat /etc/kubernetes/manifests/*.yaml | grep -c 'image: .*:"+version.Kubernetes+"'"); got != "3" {
		f.t.Errorf("%s static Pods have the new version", got)
	}
	if got := f.run(one, "ls /opt/drover/blobs | wc -l; ls -d /opt/drover/next 2>/dev/null || true"); got != fmt.Sprint(len(f.files(one))) {
		f.t.Errorf("the server keeps blobs of the former version: %s", got)
	}
	return d
}

// files returns the digests of the blobs that the agent needs.
func (f *fleet) files(s driver.Server) map[string]bool {
	f.t.Helper()
	var spec agent.Spec
	if err := json.Unmarshal([]byte(f.run(s, "cat /var/lib/drover-server/spec.json")), &spec); err != nil {
		f.t.Fatal(err)
	}
	out := map[string]bool{spec.Images: true}
	for _, digest := range spec.Files {
		out[digest] = true
	}
	return out
}

// rejectsUnfitServers breaks a server in ways that an inspection must find, and repairs it.
func (f *fleet) rejectsUnfitServers(d *Driver, s driver.Server) {
	f.t.Helper()
	for name, tt := range map[string]struct{ breaks, repairs, check string }{
		"a full disk": {"mount -t tmpfs -o size=64m full /var/lib", "umount /var/lib", "disk"},
		// Servers share the clock of this host, so the program shows another one.
		"a wrong clock": {`printf '#!/bin/sh\nexec /usr/bin/date -d "1 hour" "$@"\n' > /usr/local/bin/date; chmod 755 /usr/local/bin/date`, "rm /usr/local/bin/date", "clock"},
	} {
		f.run(s, tt.breaks)
		_, problems, err := d.Inspect(f.t.Context(), s)
		f.run(s, tt.repairs)
		if err != nil || len(problems) != 1 || problems[0].Check != tt.check || problems[0].Remedy == "" {
			f.t.Errorf("%s: found %+v, %v", name, problems, err)
		}
	}
}

// movesAddresses gives a machine an elastic address and takes it away.
func (f *fleet) movesAddresses(d *Driver, id string, s driver.Server) {
	f.t.Helper()
	elastic := f.next
	for range 20 {
		elastic = elastic.Next()
	}
	for _, step := range []struct {
		addresses []netip.Addr
		not       string
	}{{[]netip.Addr{elastic}, ""}, {nil, "! "}} {
		if err := d.SetAddresses(f.t.Context(), id, step.addresses); err != nil {
			f.t.Fatal(err)
		}
		f.eventually(s, step.not+"ip -4 -o addr show | grep -wF '"+elastic.String()+"/32'")
	}
}

// readConsole reads what a server logs until a text appears.
func readConsole(t *testing.T, d *Driver, s driver.Server, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	in, err := d.ServerConsole(ctx, s, true)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if strings.Contains(lines.Text(), want) {
			return
		}
	}
	t.Errorf("the console ended without %q", want)
}

// TestServersBecomeACluster makes two servers with a real OpenSSH server the nodes of a cluster.
// The agent is killed on the way, and metal is restarted. Their Kubernetes is upgraded in place.
// Then both servers are restored.
func TestServersBecomeACluster(t *testing.T) {
	f := newFleet(t)
	sink, home := newMetal(), t.TempDir()
	d := openDriver(t, home, sink)
	var servers []driver.Server
	for _, name := range []string{"one", "two"} {
		s := f.start(name)
		facts, problems, err := d.Inspect(t.Context(), s)
		if err != nil || len(problems) > 0 {
			t.Fatalf("inspecting: %v, %+v", err, problems)
		}
		if facts.Address.Addr().String() != s.SSH.Host || facts.Arch == "" || facts.CPUs == 0 {
			t.Fatalf("got the facts %+v", facts)
		}
		if len(servers) == 0 {
			f.rejectsUnfitServers(d, s)
		}
		s.Facts, s.SSH = facts, unreliable(t, s)
		servers = append(servers, s)
	}
	one, two := servers[0], servers[1]
	before := f.run(one, "hostname; cat /etc/hosts /etc/hostname; ls /etc/systemd/system /opt /usr/local/bin; nft list tables")

	old := oldVersion(t)
	first := sink.device(one, old, initUserdata(old, one.Facts.Address.Addr().String()))
	if err := d.Ensure(t.Context(), first, driver.On); err != nil {
		t.Fatal(err)
	}
	sink.await(t, first.ID, soon, func(e driver.Event) bool { return e.Type == "provisioning.106" })
	// The agent is killed, then metal ends: the server goes on by itself.
	f.eventually(one, "pkill -9 -f '/opt/drover/agent server-agent provision'")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openDriver(t, home, sink)
	if err := d.Ensure(t.Context(), first, driver.On); err != nil {
		t.Fatal(err)
	}
	if e := sink.await(t, first.ID, soon, succeeded); !strings.HasPrefix(e.Message, "succeeded") {
		log, _ := f.try(one, diagnose)
		t.Fatalf("%s\n%s", e.Message, log)
	}
	kubectl := "kubectl --kubeconfig /etc/kubernetes/admin.conf "
	f.eventually(one, kubectl+"wait --for=condition=Ready node/one-node --timeout=10s")
	if got, want := f.run(one, kubectl+"get node one-node -o jsonpath={.spec.providerID}"), "equinixmetal://"+first.ID; got != want {
		t.Errorf("providerID %q, want %q", got, want)
	}

	f.movesAddresses(d, first.ID, one)
	second := sink.device(two, old, joinUserdata(one.Facts.Address.Addr().String()))
	if err := d.Ensure(t.Context(), second, driver.On); err != nil {
		t.Fatal(err)
	}
	if e := sink.await(t, second.ID, soon, succeeded); !strings.HasPrefix(e.Message, "succeeded") {
		t.Fatal(e.Message)
	}
	f.eventually(one, kubectl+"wait --for=condition=Ready node/two-node --timeout=10s")
	f.eventually(one, kubectl+"-n kube-system rollout status deployment/coredns daemonset/kube-proxy --timeout=20s")
	if got, err := f.try(two, `grep -o '"userdata"' /var/lib/drover-server/spec.json`); err == nil {
		t.Errorf("the server keeps the userdata: %s", got)
	}
	if old != version.Kubernetes {
		d = f.upgradeBoth(sink, home, d, one, first, second)
	}
	readConsole(t, d, driver.Server{ID: one.ID, Name: one.Name, SSH: f.direct(one)}, "kubelet")
	two.SSH = f.direct(two)
	_, problems, err := d.Inspect(t.Context(), two)
	if err != nil || !strings.Contains(fmt.Sprint(problems), "the server is still device "+second.ID) {
		t.Errorf("a used server has the problems %+v, %v", problems, err)
	}

	for _, m := range []driver.Machine{second, first} {
		sink.remove(t, d, m.ID)
	}
	if after := f.run(one, "hostname; cat /etc/hosts /etc/hostname; ls /etc/systemd/system /opt /usr/local/bin; nft list tables"); after != before {
		t.Errorf("the server is not restored; before:\n%s\nafter:\n%s", before, after)
	}
	for _, s := range servers {
		s.SSH = f.direct(s)
		if _, problems, err := d.Inspect(t.Context(), s); err != nil || len(problems) > 0 {
			t.Errorf("a restored server has the problems %+v, %v", problems, err)
		}
		if left, _ := f.try(s, "for p in kubelet containerd etcd kube-apiserver kube-proxy; do pgrep -ax $p; done; ls /opt/drover /var/lib/drover-server /etc/kubernetes/*.conf 2>/dev/null"); left != "" {
			t.Errorf("left on %s:\n%s", s.Name, left)
		}
	}
}
