package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
)

func testSettledNodes(t *testing.T, s *settled) {
	for _, want := range []struct {
		tier, version, taint string
		maxPods              int64
		kubelet              map[string]any
	}{
		{"control", newKubernetes, "dedicated=control:NoSchedule", 50, map[string]any{"maxPods": 50.0}},
		{"front", oldKubernetes, "dedicated=front:PreferNoSchedule", 40, map[string]any{"maxPods": 40.0, "registryPullQPS": 7.0}},
	} {
		// Kubernetes removes its own taint a moment after a node is ready.
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

// kubelet returns the configuration of a node's kubelet.
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

// deployment is the object that an autoscaler reads.
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
		"--service-account-issuer=https://keys.settled.example",
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

// on returns the machine of a node.
func (f *fleet) on(node *corev1.Node) machine {
	f.t.Helper()
	for _, m := range f.machines() {
		if strings.TrimSpace(m.read("/etc/hostname")) == node.Name {
			return m
		}
	}
	f.t.Fatalf("no machine is node %s", node.Name)
	return machine{}
}

// secret creates a Secret on the cluster.
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
	for user, tier := range map[string]string{"root": "control", "developer": "front"} {
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

func (s *settled) metal() *admin.Client {
	s.t.Helper()
	c, err := admin.Open(metal.Home{Dir: s.metalHome()})
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

// runApp makes a node pull an image. It bypasses the scheduler, which respects taints.
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

// inEtcd reports whether a file of a control plane's etcd contains a text.
func (f *fleet) inEtcd(m machine, text string) bool {
	f.t.Helper()
	return f.matchesEtcd(m, regexp.QuoteMeta(text))
}

// matchesEtcd reports whether a file of a control plane's etcd matches a regular expression.
func (f *fleet) matchesEtcd(m machine, pattern string) bool {
	f.t.Helper()
	match := regexp.MustCompile("(?s)" + pattern)
	found, read := false, 0
	err := filepath.WalkDir(m.path("/var/lib/etcd"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		read += len(data)
		found = found || match.Match(data)
		return err
	})
	if err != nil || read == 0 {
		f.t.Fatalf("read %d bytes of etcd: %v", read, err)
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
