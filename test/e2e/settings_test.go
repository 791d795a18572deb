package e2e

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
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

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// TestSettingsReachMachines creates one cluster with every setting of a spec, and checks each of
// them on the machines and in the running cluster.
func TestSettingsReachMachines(t *testing.T) {
	t.Parallel()
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

// settled is the cluster and the external services of its machines.
type settled struct {
	*fleet
	*outside

	spec     []byte
	identity string // file with the private SSH key of its machines
	config   *rest.Config
	direct   kubernetes.Interface
}

func (s *settled) in(t *testing.T) *settled {
	f := *s.fleet
	f.plane = s.plane.in(t)
	s.fleet = &f
	return s
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

// gateway returns the host's address in the network of its machines.
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

// newIdentity generates a key pair and returns the public key in its usual form.
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

// credentials creates what an administrator provides: the default credentials of the Packet API,
// and those of the mirror.
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
		"packet-credentials":   {"PACKET_API_KEY": local.Data["PACKET_API_KEY"], "METAL_API_URL": local.Data["METAL_API_URL"], "METAL_API_CA": local.Data["METAL_API_CA"]},
		"registry-credentials": {"username": []byte(outsideUser), "password": []byte(outsidePassword)},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if name == "registry-credentials" {
			secret.Annotations = map[string]string{
				"clusters.anywhere.eks.amazonaws.com/credentials-namespaces": "default",
				"clusters.anywhere.eks.amazonaws.com/credentials-endpoints":  s.mirror.String(),
			}
		}
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

// node returns the first node with that label.
func (s *settled) node(tier string) *corev1.Node {
	s.t.Helper()
	list, err := s.direct.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{LabelSelector: "tier=" + tier})
	if err != nil || len(list.Items) == 0 {
		s.t.Fatalf("node of tier %s not found: %v", tier, err)
	}
	return &list.Items[0]
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

// addresses returns the number of reserved addresses, without the blocks of devices.
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
