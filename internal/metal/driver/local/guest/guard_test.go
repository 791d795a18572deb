package guest

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// namespace is a network namespace of a test.
type namespace struct {
	t      *testing.T
	handle netns.NsHandle
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{t: t}
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // The thread ends with its goroutine.
		var err error
		n.handle, err = netns.New()
		made <- err
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.handle.Close() })
	return n
}

// do runs f in the namespace.
func (n *namespace) do(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(n.handle); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// run runs shell commands in the namespace.
func (n *namespace) run(script string) {
	n.t.Helper()
	err := n.do(func() error {
		out, err := exec.CommandContext(n.t.Context(), "sh", "-ec", script).CombinedOutput()
		if err != nil {
			n.t.Logf("%s: %s", script, out)
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// get reads a URL from inside the namespace.
func (n *namespace) get(url string) (body string, err error) {
	err = n.do(func() error {
		// Dials in this goroutine: others run in other namespaces.
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "GET /userdata HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		data, err := io.ReadAll(conn)
		body = string(data)
		return err
	})
	return body, err
}

// link connects two namespaces.
func link(t *testing.T, a *namespace, nameA string, b *namespace, nameB string) {
	t.Helper()
	err := a.do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = nameA
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(b.handle)})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPodsCannotReachTheMetadataService has a host with a metadata service, a machine, and a Pod
// behind it. The machine reaches the service, the Pod doesn't, whatever address it uses: not even
// that of a Service which leads there.
func TestPodsCannotReachTheMetadataService(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip(err)
	}
	host, machine, pod := newNamespace(t), newNamespace(t), newNamespace(t)
	link(t, host, "br0", machine, "eth0")
	link(t, machine, "pod0", pod, "eth0")
	host.run("ip addr add 198.18.0.1/22 dev br0; ip link set br0 up; ip link set lo up")
	machine.run(`ip addr add 198.18.0.2/22 dev eth0; ip link set eth0 up; ip route add default via 198.18.0.1
		ip addr add 192.168.0.1/24 dev pod0; ip link set pod0 up; sysctl -qw net.ipv4.ip_forward=1`)
	pod.run("ip addr add 192.168.0.5/24 dev eth0; ip link set eth0 up; ip route add default via 192.168.0.1")
	serveAt(t, host, "198.18.0.1:80", "198.18.0.1:8080")

	spec := Spec{
		Addresses: []Address{{IP: netip.MustParseAddr("198.18.0.2"), Prefix: netip.MustParsePrefix("198.18.0.0/22"), Gateway: netip.MustParseAddr("198.18.0.1")}},
		Metadata:  netip.MustParseAddrPort("198.18.0.1:80"),
	}
	for _, loaded := range []string{guardRules(spec), rules(spec), kubeProxy} {
		machine.run("nft -f - <<'EOF'\n" + loaded + "\nEOF")
	}
	for from, n := range map[string]*namespace{"the machine": machine, "the Pod": pod} {
		if _, err := n.get("http://198.18.0.1:8080"); err != nil {
			t.Errorf("%s can't reach other ports of the host: %v", from, err)
		}
		for _, at := range []string{"169.254.169.254:80", "198.18.0.1:80", "172.26.0.9:80"} {
			body, err := n.get("http://" + at)
			if n == machine && at == "172.26.0.9:80" {
				continue // The Service is for Pods.
			}
			if reached := err == nil && strings.Contains(body, "secret"); reached != (n == machine) {
				t.Errorf("%s reads userdata at %s: %t (%v)", from, at, reached, err)
			}
		}
	}
}

// kubeProxy is what kube-proxy does for a Service whose endpoint is the metadata service, and the
// masquerading of Pods that leave the cluster.
const kubeProxy = `table ip kube-proxy {
chain prerouting {
type nat hook prerouting priority -100
ip daddr 172.26.0.9 tcp dport 80 dnat to 198.18.0.1:80
}
chain postrouting {
type nat hook postrouting priority 100
ip saddr 192.168.0.0/24 masquerade
}
}`

func serveAt(t *testing.T, n *namespace, addresses ...string) {
	t.Helper()
	for _, at := range addresses {
		var l net.Listener
		err := n.do(func() (err error) {
			l, err = net.Listen("tcp", at)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") })}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
	}
}
