package memory

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // The types of Cluster API.
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	inmemoryv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryproxy "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/proxy"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// testCA is a CA of a test cluster with a client certificate.
type testCA struct {
	cert, key             []byte
	clientCert, clientKey []byte
}

func newTestCA(t testing.TB, name string) testCA {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return testCA{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM,
		clientCert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}), clientKey: keyPEM,
	}
}

func (c testCA) hash(t testing.TB) string {
	t.Helper()
	block, _ := pem.Decode(c.cert)
	hash, err := caHash(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func indent(data []byte) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n      ")
}

// controlPlaneUserdata is userdata in the form of the kubeadm bootstrap provider, with the parts
// that the driver reads.
func controlPlaneUserdata(ca, etcd testCA, kubeadm string) string {
	var b strings.Builder
	b.WriteString("## template: jinja\n#cloud-config\n\nwrite_files:\n")
	for path, data := range map[string][]byte{
		"/etc/kubernetes/pki/ca.crt": ca.cert, "/etc/kubernetes/pki/ca.key": ca.key,
		"/etc/kubernetes/pki/etcd/ca.crt": etcd.cert, "/etc/kubernetes/pki/etcd/ca.key": etcd.key,
	} {
		fmt.Fprintf(&b, "-   path: %s\n    owner: root:root\n    permissions: '0640'\n    content: |\n%s\n", path, indent(data))
	}
	fmt.Fprintf(&b, "-   path: /run/kubeadm/kubeadm.yaml\n    content: |\n%s\nruncmd:\n- kubeadm init\n", indent([]byte(kubeadm)))
	return b.String()
}

const initConfig = `---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {}
nodeRegistration:
  name: '{{ v1.local_hostname }}'
  kubeletExtraArgs:
  - name: provider-id
    value: equinixmetal://{{ v1.instance_id }}
  - name: node-labels
    value: a=b,c=d
  taints: null
`

const joinControlPlane = `---
apiVersion: kubeadm.k8s.io/v1beta3
kind: JoinConfiguration
controlPlane: {}
nodeRegistration:
  kubeletExtraArgs:
    provider-id: equinixmetal://{{ ds.meta_data.instance_id }}
`

func workerUserdata(hash string) string {
	return "#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm-join-config.yaml\n  content: |\n" + indent([]byte(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 127.1.1.1:6443
    caCertHashes:
    - `+hash+`
nodeRegistration: {}
`)) + "\n"
}

// recorder is a sink that records reports.
type recorder struct {
	events chan string
	// beforeReport runs before each report is recorded.
	beforeReport func(id string, e driver.Event)

	mu sync.Mutex
	// sessions are the machines that may announce addresses.
	sessions map[string]bool
}

func (r *recorder) Report(id string, e driver.Event) error {
	if r.beforeReport != nil {
		r.beforeReport(id, e)
	}
	r.events <- id + " " + string(e.Phase) + " " + e.Type + " " + e.Message
	return nil
}

func (r *recorder) waitFor(t *testing.T, want string) {
	t.Helper()
	var seen []string
	for timeout := time.After(10 * time.Second); ; {
		select {
		case got := <-r.events:
			seen = append(seen, got)
			if strings.Contains(got, want) {
				return
			}
			if strings.Contains(got, "failed:") {
				t.Fatalf("got %q while waiting for %q", got, want)
			}
		case <-timeout:
			t.Fatalf("no report %q; seen: %q", want, seen)
		}
	}
}

type lab struct {
	t    *testing.T
	d    *Driver
	sink *recorder
	next netip.Addr
}

func newLab(t *testing.T) *lab {
	t.Helper()
	sink := &recorder{events: make(chan string, 10000)}
	d, err := New(t.Context(), driver.Config{Home: t.TempDir(), Sink: sink, Speed: 10000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &lab{t: t, d: d.(*Driver), sink: sink, next: d.Networks().Public.Addr().Next()}
}

func (l *lab) machine(name, userdata string, tags ...string) driver.Machine {
	l.next = l.next.Next()
	return driver.Machine{
		ID: "id-" + name, Hostname: name, Plan: "c3.small.x86", CPUs: 2, MemoryBytes: 2 << 30, Userdata: []byte(userdata), Tags: tags,
		Addresses: []driver.Address{{IP: l.next, Prefix: netip.PrefixFrom(l.next, 31), Public: true, Management: true}},
		Instance:  driver.InstanceData{InstanceID: "id-" + name, LocalHostname: name, Region: "da"},
	}
}

func (l *lab) start(m driver.Machine) {
	l.t.Helper()
	if err := l.d.Ensure(l.t.Context(), m, driver.On); err != nil {
		l.t.Fatal(err)
	}
	l.sink.waitFor(l.t, m.ID+"  user-state succeeded")
}

func config(host string, ca testCA) *rest.Config {
	return &rest.Config{Host: "https://" + host + ":6443", TLSClientConfig: rest.TLSClientConfig{CAData: ca.cert, CertData: ca.clientCert, KeyData: ca.clientKey}}
}

func (l *lab) nodes(host string, ca testCA) map[string]corev1.Node {
	l.t.Helper()
	list, err := kubernetes.NewForConfigOrDie(config(host, ca)).CoreV1().Nodes().List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	out := map[string]corev1.Node{}
	for _, n := range list.Items {
		out[n.Name] = n
	}
	return out
}

func TestMachinesFormACluster(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	first := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	l.start(first)
	host := first.Addresses[0].IP.String()

	l.start(l.machine("cp-2", controlPlaneUserdata(ca, etcd, joinControlPlane), "kubernetes.io/version:v1.36.4"))
	l.start(l.machine("worker", workerUserdata(ca.hash(t))))

	nodes := l.nodes(host, ca)
	if len(nodes) != 3 {
		t.Fatalf("the cluster has nodes %v, want three", nodes)
	}
	cp := nodes["cp-1"]
	if cp.Spec.ProviderID != "equinixmetal://id-cp-1" || cp.Labels["a"] != "b" || len(cp.Spec.Taints) != 1 {
		t.Errorf("the first node has provider id %q, labels %v, taints %v", cp.Spec.ProviderID, cp.Labels, cp.Spec.Taints)
	}
	second := nodes["cp-2"]
	if got := second.Status.NodeInfo.KubeletVersion; got != "v1.36.4" || second.Spec.ProviderID != "equinixmetal://id-cp-2" {
		t.Errorf("the second node runs %s with provider id %q, want what its tag and its userdata say", got, second.Spec.ProviderID)
	}
	worker := nodes["worker"]
	if got := worker.Status.NodeInfo.KubeletVersion; got != "v1.36.4" || worker.Spec.ProviderID != "" {
		t.Errorf("the worker runs %s with provider id %q, want what the newest control plane runs, and none", got, worker.Spec.ProviderID)
	}
	if got := l.members(host, ca, etcd, "etcd-cp-2"); !slices.Equal(got, []string{"cp-1", "cp-2"}) {
		t.Errorf("etcd members = %v", got)
	}

	if err := l.d.Remove(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	host = l.d.machines["id-cp-2"].spec.Addresses[0].IP.String()
	if nodes := l.nodes(host, ca); len(nodes) != 2 {
		t.Errorf("after a machine was removed there are %d nodes, want 2", len(nodes))
	}
	if got := l.members(host, ca, etcd, "etcd-cp-2"); !slices.Equal(got, []string{"cp-2"}) {
		t.Errorf("after the leader was removed etcd has %v", got)
	}
	if responds(first.Addresses[0].IP) {
		t.Error("a removed machine still answers")
	}
}

// members lists all etcd members through the API server, as the control plane controller does.
func (l *lab) members(host string, ca, etcd testCA, pod string) []string {
	l.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(etcd.cert)
	pair, err := tls.X509KeyPair(etcd.clientCert, etcd.clientKey)
	if err != nil {
		l.t.Fatal(err)
	}
	cl, err := clientv3.New(clientv3.Config{
		Endpoints: []string{pod}, DialTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(_ context.Context, addr string) (net.Conn, error) {
			conn, err := dialSocket(config(host, ca), addr)
			return patient{conn}, err
		})},
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	list, err := cl.MemberList(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for _, m := range list.Members {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	if _, err := cl.Status(ctx, pod); err != nil {
		l.t.Errorf("the member has no status: %v", err)
	}
	return names
}

// dialSocket forwards the port of a Pod through a WebSocket.
func dialSocket(config *rest.Config, pod string) (net.Conn, error) {
	at, err := url.Parse(config.Host + "/api/v1/namespaces/kube-system/pods/" + pod + "/portforward")
	if err != nil {
		return nil, err
	}
	dialer, err := portforward.NewSPDYOverWebsocketDialer(at, config)
	if err != nil {
		return nil, err
	}
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	var stream httpstream.Stream
	for _, kind := range []string{corev1.StreamTypeError, corev1.StreamTypeData} {
		headers := http.Header{}
		headers.Set(corev1.PortHeader, "2379")
		headers.Set(corev1.PortForwardRequestIDHeader, "0")
		headers.Set(corev1.StreamType, kind)
		if stream, err = conn.CreateStream(headers); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return inmemoryproxy.NewConn(conn, stream), nil
}

// patient suppresses deadlines on the proxy's connection, which does not support setting them from
// two goroutines.
type patient struct{ net.Conn }

func (patient) SetDeadline(time.Time) error      { return nil }
func (patient) SetReadDeadline(time.Time) error  { return nil }
func (patient) SetWriteDeadline(time.Time) error { return nil }

func TestElasticAddressMovesBetweenControlPlanes(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	one := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	two := l.machine("cp-2", controlPlaneUserdata(ca, etcd, joinControlPlane))
	l.start(one)
	l.start(two)
	l.next = l.next.Next()
	vip := l.next
	for _, m := range []driver.Machine{one, two} {
		for _, other := range []driver.Machine{one, two} {
			if other.ID != m.ID {
				mustDo(t, l.d.SetAddresses(t.Context(), other.ID, nil))
			}
		}
		mustDo(t, l.d.SetAddresses(t.Context(), m.ID, []netip.Addr{vip}))
		if got := len(l.nodes(vip.String(), ca)); got != 2 {
			t.Errorf("with the address on %s there are %d nodes", m.Hostname, got)
		}
	}
	mustDo(t, l.d.Ensure(t.Context(), two, driver.Off))
	l.sink.waitFor(t, two.ID+" Off")
	if responds(vip) {
		t.Error("the address of a machine that is off still answers")
	}
	down := l.nodes(one.Addresses[0].IP.String(), ca)["cp-2"]
	if ready := down.Status.Conditions[0]; ready.Status != corev1.ConditionUnknown {
		t.Errorf("the node of a machine that is off is ready: %v", ready)
	}
	l.start(two)
	up := l.nodes(vip.String(), ca)["cp-2"]
	if ready := up.Status.Conditions[0]; ready.Status != corev1.ConditionTrue {
		t.Errorf("the node of a machine that is on again is not ready: %v", ready)
	}
}

func TestElasticAddressIsKept(t *testing.T) {
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	t.Run("given to a machine that boots", func(t *testing.T) {
		l := newLab(t)
		m := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
		vip := l.next.Next()
		l.sink.beforeReport = func(id string, e driver.Event) {
			if e.Phase == driver.Running {
				mustDo(t, l.d.SetAddresses(t.Context(), id, []netip.Addr{vip}))
			}
		}
		l.start(m)
		if !responds(vip) {
			t.Error("no response on the address")
		}
	})
	t.Run("taken from one machine after it was given to another", func(t *testing.T) {
		l := newLab(t)
		one := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
		two := l.machine("cp-2", controlPlaneUserdata(ca, etcd, joinControlPlane))
		vip := l.next.Next()
		l.start(one)
		l.start(two)
		mustDo(t, l.d.SetAddresses(t.Context(), two.ID, []netip.Addr{vip}))
		mustDo(t, l.d.SetAddresses(t.Context(), one.ID, []netip.Addr{vip})) // a late caller
		mustDo(t, l.d.SetAddresses(t.Context(), one.ID, nil))
		if !responds(vip) {
			t.Error("no response on the address")
		}
	})
}

func TestEtcdElectsANewLeader(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	one := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	two := l.machine("cp-2", controlPlaneUserdata(ca, etcd, joinControlPlane))
	l.start(one)
	l.start(two)
	cl := l.d.clusters.client(l.d.clusters.nodes[one.ID].cluster)
	mustDo(t, modify(t.Context(), cl, staticPod("etcd", "cp-1"), func(o *corev1.Pod) { o.Annotations[inmemoryv1.EtcdMemberRemoved] = "" }))
	if got := l.members(two.Addresses[0].IP.String(), ca, etcd, "etcd-cp-2"); !slices.Equal(got, []string{"cp-2"}) {
		t.Errorf("etcd has members %v", got)
	}
}

func responds(at netip.Addr) bool {
	conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(at, apiPort).String(), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestForeignClientCertificatesAreDenied(t *testing.T) {
	l := newLab(t)
	ca, etcd, stranger := newTestCA(t, "kubernetes"), newTestCA(t, "etcd"), newTestCA(t, "other")
	m := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	l.start(m)
	host := m.Addresses[0].IP.String()
	for name, cfg := range map[string]*rest.Config{
		"without a certificate": {Host: "https://" + host + ":6443", TLSClientConfig: rest.TLSClientConfig{CAData: ca.cert}},
		"with one of another CA": {Host: "https://" + host + ":6443", TLSClientConfig: rest.TLSClientConfig{
			CAData: ca.cert, CertData: stranger.clientCert, KeyData: stranger.clientKey,
		}},
	} {
		_, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		if err == nil {
			t.Errorf("a client %s read secrets", name)
		}
	}
}

func TestLastMachineRemovesTheCluster(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	m := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	l.start(m)
	mustDo(t, l.d.Remove(t.Context(), m.ID))
	mustDo(t, l.d.Remove(t.Context(), m.ID))
	if n := len(l.d.clusters.byID) + len(l.d.clusters.nodes) + len(l.d.clusters.fronts) + len(l.d.machines); n != 0 {
		t.Errorf("got %d leftovers, want none", n)
	}
}

// MayAnnounce makes the recorder a router.
func (r *recorder) MayAnnounce(id string, _ netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// startSession lets a machine announce addresses, as metal does.
func (l *lab) startSession(m driver.Machine) {
	l.t.Helper()
	l.sink.mu.Lock()
	l.sink.sessions[m.ID] = true
	l.sink.mu.Unlock()
	if err := l.d.SetAddresses(l.t.Context(), m.ID, nil); err != nil {
		l.t.Fatal(err)
	}
}

// TestKubeVIPAnnouncesEndpoint has machines with and without kube-vip and sessions. One that has
// both serves the endpoint, until it stops.
func TestKubeVIPAnnouncesEndpoint(t *testing.T) {
	l := newLab(t)
	l.sink.sessions = map[string]bool{}
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	l.next = l.next.Next()
	vip := l.next
	with := func(kubeadm string) string {
		return controlPlaneUserdata(ca, etcd, kubeadm) + "- ctr image pull example.org/kube-vip:v1\n"
	}
	begin := strings.Replace(initConfig, "kubernetesVersion", "controlPlaneEndpoint: "+vip.String()+":6443\nkubernetesVersion", 1)
	join := joinControlPlane + "discovery: {bootstrapToken: {apiServerEndpoint: '" + vip.String() + ":6443'}}\n"
	one, two := l.machine("cp-1", with(begin)), l.machine("cp-2", with(join))
	plain := l.machine("cp-3", controlPlaneUserdata(ca, etcd, join))
	for _, m := range []driver.Machine{one, two, plain} {
		l.start(m)
	}
	l.startSession(plain)
	if responds(vip) {
		t.Error("the endpoint answers without a session of a machine with kube-vip")
	}
	l.startSession(one)
	l.startSession(two)
	if nodes := l.nodes(vip.String(), ca); len(nodes) != 3 {
		t.Errorf("the endpoint answers with %d nodes", len(nodes))
	}
	if got := l.d.clusters.fronts[netip.AddrPortFrom(vip, apiPort)].machine; got != one.ID {
		t.Errorf("%s leads, want the first with a session", got)
	}
	for _, m := range []driver.Machine{one, two} {
		if !responds(vip) {
			t.Errorf("the endpoint does not answer before %s is removed", m.ID)
		}
		if err := l.d.Remove(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	if responds(vip) {
		t.Error("the endpoint still answers after the last machine was removed")
	}
}
