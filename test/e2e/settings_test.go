package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
	metalclient "github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// TestSettingsReachMachines makes one cluster behind the Packet API with all that a spec can say, and looks for each of it on the machines and
// in the running cluster.
func TestSettingsReachMachines(t *testing.T) {
	s := newSettled(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *settled)
	}{
		{"what Drover does anyway can't be left out", testLoadBalancerRefused},
		{"a cluster with all settings is ready", testSettledReady},
		{"nodes are what their groups say", testSettledNodes},
		{"API servers are what the spec says", testSettledAPIServer},
		{"requests are written down by the policy", testSettledAudit},
		{"keys open machines", testSettledKeys},
		{"images come from the mirror, others through the proxy", testSettledImages},
		{"encryption is added while the autoscaler adds a machine", testSettledEncryption},
		{"fewer workers are fewer devices", testSettledScaleDown},
		{"deletion leaves neither device nor address", testSettledDeletion},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s.in(t)) }) {
			t.Log(s.in(t).drover("kubectl", "get", "clusters.anywhere.eks.amazonaws.com,machinedeployments,kubeadmcontrolplanes,helmreleaseproxies", "-A", "-o", "wide").stdout)
			return
		}
	}
}

// settled is the cluster, and what its machines find outside.
type settled struct {
	*fleet
	*outside

	spec     []byte
	identity string // file with the private key that opens its machines
	config   *rest.Config
	direct   kubernetes.Interface
}

func (s *settled) in(t *testing.T) *settled {
	f := *s.fleet
	f.plane = &plane{t: t, home: s.home}
	s.fleet = &f
	return s
}

// await has the patience that machines need.
func (s *settled) await(what string, cond func() bool) {
	s.t.Helper()
	(&workload{fleet: s.fleet}).await(what, cond)
}

func newSettled(t *testing.T) *settled {
	t.Helper()
	f := newFleet(t)
	s := &settled{fleet: f, outside: newOutside(t, f.gateway()), identity: filepath.Join(t.TempDir(), "identity")}
	public := s.newIdentity()
	authority, err := json.Marshal(string(s.authority.PEM()))
	if err != nil {
		t.Fatal(err)
	}
	s.spec, err = clustertest.Render("testdata/settings/cluster.yaml", map[string]string{
		"PROJECT_ID": f.project, "SSH_KEY": public, "PROXY": s.proxyURL(), "MIRROR_CA": string(authority),
		"MIRROR_HOST": s.mirror.IP.String(), "MIRROR_PORT": strconv.Itoa(s.mirror.Port),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.credentials()
	return s
}

// gateway is the host's address on the network of its machines.
func (f *fleet) gateway() net.IP {
	f.t.Helper()
	bridge, err := net.InterfaceByName("drv" + f.id)
	if err != nil {
		f.t.Fatal(err)
	}
	addresses, err := bridge.Addrs()
	if err != nil || len(addresses) == 0 {
		f.t.Fatalf("the bridge has addresses %v: %v", addresses, err)
	}
	return addresses[0].(*net.IPNet).IP
}

// newIdentity makes a pair of keys and returns the public one as people have it in files.
func (s *settled) newIdentity() string {
	s.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.identity, pem.EncodeToMemory(block), 0o600); err != nil {
		s.t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// credentials are the administrator's part: those of the Packet API, under the name that is the default, and those of the mirror.
func (s *settled) credentials() {
	s.t.Helper()
	secrets := s.kubernetes().CoreV1().Secrets("eksa-system")
	var local *corev1.Secret
	s.await("the plane knows its metal", func() (ok bool) {
		var err error
		local, err = secrets.Get(s.t.Context(), "local-metal", metav1.GetOptions{})
		return err == nil
	})
	for name, data := range map[string]map[string][]byte{
		"packet-credentials":   {"PACKET_API_KEY": local.Data["PACKET_API_KEY"], "METAL_API_URL": local.Data["METAL_API_URL"]},
		"registry-credentials": {"username": []byte(outsideUser), "password": []byte(outsidePassword)},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if _, err := secrets.Create(s.t.Context(), secret, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func testLoadBalancerRefused(t *testing.T, s *settled) {
	without := bytes.Replace(s.spec, []byte("    count: 1\n"), []byte("    count: 1\n    skipLoadBalancerDeployment: true\n"), 1)
	s.refused("spec.controlPlaneConfiguration.skipLoadBalancerDeployment", "kubectl", "apply", "--dry-run=server", "-f", file(t, string(without)))
}

// awaitCarriedOut waits until the cluster is ready with this generation of its spec.
func (s *settled) awaitCarriedOut(generation int) {
	s.t.Helper()
	s.must("kubectl", "wait", "clusters.anywhere.eks.amazonaws.com/settled", "--timeout=5m", fmt.Sprintf("--for=jsonpath={.status.reconciledGeneration}=%d", generation))
}

func testSettledReady(t *testing.T, s *settled) {
	begin := time.Now()
	s.must("kubectl", "apply", "-f", file(t, string(s.spec)))
	s.awaitCarriedOut(1)
	t.Logf("ready after %s", time.Since(begin).Round(100*time.Millisecond))
	secret, err := s.kubernetes().CoreV1().Secrets("eksa-system").Get(t.Context(), "settled-kubeconfig", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.config, err = clientcmd.RESTConfigFromKubeConfig(secret.Data["value"]); err != nil {
		t.Fatal(err)
	}
	s.config.Timeout = 10 * time.Second
	if s.direct, err = kubernetes.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
}

// node is the first with that label.
func (s *settled) node(tier string) *corev1.Node {
	s.t.Helper()
	list, err := s.direct.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{LabelSelector: "tier=" + tier})
	if err != nil || len(list.Items) == 0 {
		s.t.Fatalf("there is no node of tier %s: %v", tier, err)
	}
	return &list.Items[0]
}

func testSettledNodes(t *testing.T, s *settled) {
	for _, want := range []struct {
		tier, version, taint string
		maxPods              int64
		kubelet              map[string]any
	}{
		{"control", newKubernetes, "dedicated=control:NoSchedule", 50, map[string]any{"maxPods": 50.0}},
		{"front", oldKubernetes, "dedicated=front:PreferNoSchedule", 40, map[string]any{"maxPods": 40.0, "registryPullQPS": 7.0}},
	} {
		// Kubernetes takes its own away a moment after a node is ready.
		s.await("the node of tier "+want.tier+" has the taint "+want.taint+" alone", func() bool {
			taints := s.node(want.tier).Spec.Taints
			return len(taints) == 1 && taints[0].ToString() == want.taint
		})
		node := s.node(want.tier)
		if node.Status.NodeInfo.KubeletVersion != want.version || node.Status.Capacity.Pods().Value() != want.maxPods ||
			!strings.HasSuffix(node.Spec.PodCIDR, "/25") {
			t.Errorf("node %s has version %s, room for %s pods and block %s, want %+v", node.Name, node.Status.NodeInfo.KubeletVersion,
				node.Status.Capacity.Pods(), node.Spec.PodCIDR, want)
		}
		for setting, value := range want.kubelet {
			if got := s.kubelet(node.Name)[setting]; got != value {
				t.Errorf("the kubelet of %s has %s %v, want %v", node.Name, setting, got, value)
			}
		}
	}
	s.await("the worker has its role", func() bool {
		_, ok := s.node("front").Labels["node-role.kubernetes.io/worker"]
		return ok
	})
	s.checkDeployment()
}

// kubelet is what the kubelet of a node runs with.
func (s *settled) kubelet(node string) map[string]any {
	s.t.Helper()
	data, err := s.direct.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").DoRaw(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var out struct{ KubeletConfig map[string]any }
	if err := json.Unmarshal(data, &out); err != nil {
		s.t.Fatal(err)
	}
	return out.KubeletConfig
}

// deployment is what an autoscaler looks at.
func (s *settled) deployment() *clusterv1.MachineDeployment {
	s.t.Helper()
	out := &clusterv1.MachineDeployment{}
	if err := json.Unmarshal([]byte(s.must("kubectl", "get", "machinedeployments", "settled-md-0", "-n", "eksa-system", "-o", "json").stdout), out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *settled) checkDeployment() {
	s.t.Helper()
	d := s.deployment()
	if d.Annotations[clusterv1.AutoscalerMinSizeAnnotation] != "1" || d.Annotations[clusterv1.AutoscalerMaxSizeAnnotation] != "3" {
		s.t.Errorf("an autoscaler finds %v", d.Annotations)
	}
	if r := d.Spec.Rollout.Strategy.RollingUpdate; r.MaxSurge.IntValue() != 0 || r.MaxUnavailable.IntValue() != 1 {
		s.t.Errorf("workers are replaced with %v more and %v fewer", r.MaxSurge, r.MaxUnavailable)
	}
}

func testSettledAPIServer(t *testing.T, s *settled) {
	pods, err := s.direct.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("there are %d API servers: %v", len(pods.Items), err)
	}
	flags := pods.Items[0].Spec.Containers[0].Command
	for _, want := range []string{
		"--oidc-issuer-url=https://login.settled.example", "--oidc-client-id=kubernetes", "--oidc-username-claim=email", "--oidc-groups-claim=groups",
		"--oidc-groups-prefix=login:", "--oidc-required-claim=hd=settled.example", "--audit-log-maxage=7", "--event-ttl=30m0s",
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("the API server has no %s: %v", want, flags)
		}
	}
	trust, err := rest.TLSConfigFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(s.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api.settled.example", "203.0.113.9"} {
		conn, err := tls.Dial("tcp", host.Host, &tls.Config{RootCAs: trust.RootCAs, ServerName: name, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Errorf("the API server can't show that it is %s: %v", name, err)
			continue
		}
		conn.Close()
	}
}

// on is the machine of a node.
func (s *settled) on(node *corev1.Node) machine {
	s.t.Helper()
	for _, m := range s.machines() {
		if strings.TrimSpace(m.read("/etc/hostname")) == node.Name {
			return m
		}
	}
	s.t.Fatalf("no machine is node %s", node.Name)
	return machine{}
}

// secret makes one on the cluster.
func (s *settled) secret(name, word string) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"word": word}}
	if _, err := s.direct.CoreV1().Secrets("default").Create(s.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func testSettledAudit(t *testing.T, s *settled) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-no-interest"}}
	if _, err := s.direct.CoreV1().ConfigMaps("default").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.secret("before", canary)
	log := func() string { return s.on(s.node("control")).read("/var/log/kubernetes/api-audit.log") }
	s.await("the Secret is on record", func() bool {
		return strings.Contains(log(), `"resource":"secrets","namespace":"default","name":"before"`)
	})
	if strings.Contains(log(), "of-no-interest") || strings.Contains(log(), canary) {
		t.Error("on record is more than the policy says")
	}
}

func testSettledKeys(t *testing.T, s *settled) {
	for user, tier := range map[string]string{"root": "control", "kim": "front"} {
		node := s.node(tier).Name
		if got := s.must("machine", "ssh", "-l", user, "-i", s.identity, node, "id", "-un").stdout; strings.TrimSpace(got) != user {
			t.Errorf("on %s the key is for %q, want %s", node, got, user)
		}
	}
	devices, err := s.metal().Devices(t.Context(), url.Values{"tag": {"colour:red"}})
	if err != nil || len(devices) != 1 {
		t.Errorf("%d devices have the tag of control planes: %v", len(devices), err)
	}
}

func (s *settled) metal() *metalclient.Client {
	s.t.Helper()
	c, err := metalclient.Open(metal.Home{Dir: s.metalHome()})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func testSettledImages(t *testing.T, s *settled) {
	for _, tier := range []string{"control", "front"} {
		s.runApp("mirrored-"+tier, tier, "mirrored.example/team/app:v1")
	}
	s.runApp("outside", "front", "outside.example/team/app:v1")
	for _, pod := range []string{"mirrored-control", "mirrored-front"} {
		s.await("an image of the mirror is there for "+pod, func() bool {
			events, err := s.direct.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Pulled,involvedObject.name=" + pod})
			return err == nil && len(events.Items) > 0
		})
	}
	s.await("somebody asks the proxy", func() bool { return len(s.tunnels()) > 0 })
	for _, pod := range []string{"mirrored-control", "mirrored-front", "outside"} {
		if err := s.direct.CoreV1().Pods("default").Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// runApp has a node pull an image. The scheduler, which knows taints, is not asked.
func (s *settled) runApp(name, tier, image string) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: s.node(tier).Name, TerminationGracePeriodSeconds: new(int64), HostNetwork: true,
		Containers: []corev1.Container{{Name: "app", Image: image, ImagePullPolicy: corev1.PullAlways, Command: []string{"/nothing"}}},
	}}
	if _, err := s.direct.CoreV1().Pods("default").Create(s.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// inEtcd tells whether a text is in a file of a control plane's etcd.
func (s *settled) inEtcd(m machine, text string) bool {
	s.t.Helper()
	found, read := false, 0
	err := filepath.WalkDir(m.path("/var/lib/etcd"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		read += len(data)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil || read == 0 {
		s.t.Fatalf("read %d bytes of etcd: %v", read, err)
	}
	return found
}

const encryption = `{"spec": {"etcdEncryption": [{"resources": ["secrets"], "providers": [{"kms": {"name": "keys", "socketListenAddress": "unix://` + keySocket + `"}}]}]}}`

func testSettledEncryption(t *testing.T, s *settled) {
	before := s.node("control").Name
	if !s.inEtcd(s.on(s.node("control")), canary) {
		t.Error("the Secret is not where one would look for it")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go s.serveKeys(ctx)
	begin := time.Now()
	s.must("kubectl", "scale", "machinedeployments", "settled-md-0", "-n", "eksa-system", "--replicas=2")
	s.must("kubectl", "patch", "clusters.anywhere.eks.amazonaws.com", "settled", "--type=merge", "-p", encryption)
	s.awaitCarriedOut(2)
	t.Logf("carried out after %s", time.Since(begin).Round(100*time.Millisecond))
	if node := s.node("control").Name; node == before {
		t.Fatalf("control plane %s was not replaced", node)
	}
	if d := s.deployment(); *d.Spec.Replicas != 2 || len(s.devices()) != 3 {
		t.Errorf("the autoscaler's %d workers are devices %v", *d.Spec.Replicas, s.devices())
	}
	const word = "canary-that-nobody-hears"
	s.secret("after", word)
	m := s.on(s.node("control"))
	if s.inEtcd(m, word) || !s.inEtcd(m, "k8s:enc:kms:v2:keys:") {
		t.Error("a Secret is stored as it is")
	}
	for name, want := range map[string]string{"before": canary, "after": word} {
		secret, err := s.direct.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || string(secret.Data["word"]) != want {
			t.Errorf("Secret %s can't be read any more: %v", name, err)
		}
	}
}

func testSettledScaleDown(t *testing.T, s *settled) {
	s.must("kubectl", "scale", "machinedeployments", "settled-md-0", "-n", "eksa-system", "--replicas=1")
	s.await("a device is gone", func() bool { return len(s.devices()) == 2 })
	if got := s.addresses(); got != 1 {
		t.Errorf("the project has %d addresses, want that of the API server", got)
	}
	if got := s.tunnels(); !slices.Equal(got, []string{"outside.example:443"}) {
		t.Errorf("the proxy was asked for %v", got)
	}
}

// addresses is how many are reserved, apart from the blocks that devices get theirs from.
func (s *settled) addresses() int {
	s.t.Helper()
	var out api.IPReservations
	if err := s.metal().Do(s.t.Context(), http.MethodGet, "/projects/"+s.project+"/ips", nil, &out); err != nil {
		s.t.Fatal(err)
	}
	return len(slices.DeleteFunc(out.IPAddresses, func(r api.IPReservation) bool { return r.Management }))
}

func testSettledDeletion(t *testing.T, s *settled) {
	begin := time.Now()
	s.must("kubectl", "delete", "clusters.anywhere.eks.amazonaws.com", "settled", "--timeout=5m")
	t.Logf("gone after %s", time.Since(begin).Round(100*time.Millisecond))
	if left := s.devices(); len(left) > 0 {
		t.Errorf("devices %v are left", left)
	}
	if left := s.addresses(); left > 0 {
		t.Errorf("%d addresses are left", left)
	}
	left := s.must("kubectl", "get", "clusters.cluster.x-k8s.io,machines,packetclusters,packetmachinetemplates,kubeadmconfigtemplates,helmchartproxies", "-A", "-o", "name").stdout
	secrets := s.must("kubectl", "get", "secrets", "-n", "eksa-system", "-o", "name").stdout
	if left != "" || strings.Contains(secrets, "settled") {
		t.Errorf("objects are left:\n%s%s", left, secrets)
	}
}
