package local

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
)

const kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf "

// podCluster is a control plane and a worker without a pod network.
type podCluster struct {
	*fixture
	cp, worker driver.Machine
	registries registries
	start      time.Time
}

func newPodCluster(t *testing.T) *podCluster {
	t.Helper()
	f := newFixture(t)
	c := &podCluster{fixture: f, registries: serveRegistries(t, gateway(f.network.Public)), start: time.Now()}
	c.cp = f.device("cp-1", "")
	address := c.cp.Addresses[0].IP.String()
	c.cp.Userdata = fmt.Appendf(nil, "#cloud-config\nruncmd:\n- kubeadm init --config /etc/kubeadm.yaml\nwrite_files:\n- path: /etc/kubeadm.yaml\n  content: |\n    %s\n", indent(`apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
controlPlaneEndpoint: `+address+`:6443
networking: {podSubnet: 192.168.0.0/16, serviceSubnet: 172.26.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: `+token+`}]`))
	f.boot(c.cp)
	c.stage("kubeadm init done")
	c.worker = f.device("worker-1", fmt.Sprintf("#cloud-config\nruncmd:\n- kubeadm join %s:6443 --token %s --discovery-token-unsafe-skip-ca-verification\nwrite_files:\n%s",
		address, token, c.registries.userdata()))
	f.boot(c.worker)
	c.stage("kubeadm join done")
	return c
}

func (c *podCluster) stage(name string) {
	c.t.Logf("%6.1f s %s", time.Since(c.start).Seconds(), name)
}

// kubectl runs on the control plane.
func (c *podCluster) kubectl(line string) string {
	c.t.Helper()
	return c.run(c.cp.ID, kubectl+line)
}

func (c *podCluster) apply(manifest string) {
	c.t.Helper()
	c.kubectl("apply -f - <<'EOF'\n" + manifest + "\nEOF")
}

// chart returns charts/cni as it is installed.
func (c *podCluster) chart(values map[string]any) string {
	c.t.Helper()
	documents, err := helm.Render("../../../../charts/cni", helm.Release{Name: "drover-cni", Namespace: "kube-system", Kubernetes: "v1.36.3", Values: values})
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Join(documents, "\n---\n")
}

// pod returns a server that responds with the client's address, and has the tools to query others.
func pod(name, on string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 0
  containers:
  - name: server
    image: %[3]s
    command:
    - bash
    - -c
    - |
      cat > /tmp/serve <<'END'
      while read -r line && [ ${#line} -gt 1 ]; do :; done
      printf 'HTTP/1.0 200 OK\r\n\r\n%[1]s %%s' "$SOCAT_PEERADDR"
      END
      exec socat TCP-LISTEN:8080,fork,reuseaddr EXEC:"bash /tmp/serve"
---
apiVersion: v1
kind: Service
metadata: {name: service-%[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 80, targetPort: 8080}]
`, name, on, node.ToolsImage)
}

// ask queries a server from a pod and returns the response.
func (c *podCluster) ask(pod, url string) string {
	c.t.Helper()
	return c.eventually(c.cp.ID, kubectl+"exec "+pod+" -- curl -sSfk --max-time 5 "+url, soon)
}

func (c *podCluster) address(pod string) string {
	c.t.Helper()
	return c.kubectl("get pod " + pod + " -o jsonpath={.status.podIP}")
}

func TestPodsCommunicateAcrossNodes(t *testing.T) {
	c := newPodCluster(t)
	c.apply(c.chart(nil))
	c.stage("chart applied")
	c.kubectl("wait --for=condition=Ready node --all --timeout=180s")
	c.stage("both nodes ready")
	c.apply(pod("a", "cp-1") + pod("b", "worker-1"))
	c.kubectl("wait --for=condition=Ready pod/a pod/b --timeout=180s")
	c.stage("first pods ready")
	c.kubectl("-n kube-system rollout status deployment/coredns daemonset/kube-proxy daemonset/drover-cni --timeout=120s")
	c.stage("CoreDNS, kube-proxy and agents ready")

	c.testPods()
	c.testServices()
	c.testMasquerade()
	c.testProxyMode()
	c.testRegistries()
	c.testReplace()
}

// testPods checks that pods see each other's addresses.
func (c *podCluster) testPods() {
	t := c.t
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		from, to := pair[0], pair[1]
		want := to + " " + c.address(from)
		if got := c.ask(from, c.address(to)+":8080"); got != want {
			t.Errorf("pod %s asks pod %s: answer %q, want %q", from, to, got, want)
		}
	}
}

// testServices checks that services are reachable by address and by name.
func (c *podCluster) testServices() {
	t := c.t
	for _, to := range []string{"a", "b"} {
		service := "service-" + to
		ip := c.kubectl("get service " + service + " -o jsonpath={.spec.clusterIP}")
		for _, from := range []string{"a", "b"} { // including its own node and itself
			for _, host := range []string{ip, service, service + ".default.svc.cluster.local"} {
				if got := c.ask(from, host); !strings.HasPrefix(got, to+" ") {
					t.Errorf("pod %s asks %q as %q: %q", from, service, host, got)
				}
			}
		}
	}
	for _, from := range []string{"a", "b"} {
		if got := c.ask(from, "https://kubernetes.default.svc/readyz"); got != "ok" {
			t.Errorf("pod %s asks the API server whether it is ready: %q", from, got)
		}
	}
}

// testMasquerade checks that external servers see the addresses of nodes: pods query this test,
// which is outside the cluster.
func (c *podCluster) testMasquerade() {
	t := c.t
	l, err := net.Listen("tcp", netip.AddrPortFrom(gateway(c.network.Public), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		io.WriteString(w, host)
	})}
	go server.Serve(l)
	defer server.Close()
	for from, m := range map[string]driver.Machine{"a": c.cp, "b": c.worker} {
		if got, want := c.ask(from, l.Addr().String()), m.Addresses[0].IP.String(); got != want {
			t.Errorf("the world sees pod %s as %q, want its node %q", from, got, want)
		}
	}
}

// testProxyMode checks how services are implemented here.
func (c *podCluster) testProxyMode() {
	t := c.t
	for _, m := range []driver.Machine{c.cp, c.worker} {
		if got := c.run(m.ID, "curl -sf http://127.0.0.1:10249/proxyMode"); got != "nftables" {
			t.Errorf("kube-proxy of %s runs in mode %q", m.Hostname, got)
		}
		if tables := c.run(m.ID, "nft list tables"); !strings.Contains(tables, "table ip kube-proxy") {
			t.Errorf("the tables of %s:\n%s", m.Hostname, tables)
		}
	}
}

// leftovers returns the remains of the agent on a machine.
const leftovers = "ls /etc/cni/net.d; ip route show proto 79; ip -6 route show proto 79; nft list tables | grep drover-cni || true"

// testReplace removes the network as in docs/guides/set-up-pod-network.md and installs another.
func (c *podCluster) testReplace() {
	t := c.t
	machines := []driver.Machine{c.cp, c.worker}
	for i, m := range machines {
		want := "10-drover.conflist\n192.168." + fmt.Sprint(1-i) + ".0/24 via " + machines[1-i].Addresses[0].IP.String() + " dev eth0 \ntable ip drover-cni"
		if got := c.run(m.ID, leftovers); got != want {
			t.Errorf("%s has %q of the network, want %q", m.Hostname, got, want)
		}
	}
	c.apply(c.chart(map[string]any{"remove": true}))
	c.kubectl("-n kube-system rollout status daemonset/drover-cni --timeout=180s")
	for _, m := range machines {
		if got := c.run(m.ID, leftovers); got != "" {
			t.Errorf("%s still has of the network:\n%s", m.Hostname, got)
		}
	}
	c.kubectl("delete -f - <<'EOF'\n" + c.chart(nil) + "\nEOF")
	for i, m := range machines {
		c.run(m.ID, "ip route add 192.168."+fmt.Sprint(1-i)+".0/24 via "+machines[1-i].Addresses[0].IP.String())
		c.run(m.ID, "cat > /etc/cni/net.d/99-other.conflist <<'EOF'\n"+fmt.Sprintf(conflist, "192.168."+fmt.Sprint(i)+".0/24")+"\nEOF")
	}
	c.kubectl("wait --for=condition=Ready node --all --timeout=180s")
	// Pods of the old network have addresses that the new one may assign.
	c.kubectl("delete pod --all-namespaces --field-selector spec.hostNetwork=false --timeout=180s")
	c.apply(pod("a", "cp-1") + pod("b", "worker-1"))
	c.kubectl("wait --for=condition=Ready pod/a pod/b --timeout=180s")
	if got := c.ask("a", c.address("b")+":8080"); !strings.HasPrefix(got, "b ") {
		t.Errorf("on another network pod b answers %q", got)
	}
	c.stage("another network has taken over")
}
