package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
)

// movable is a cluster with everything that can go wrong in a move: three control plane machines,
// one of which holds the endpoint, workers, and its own credentials.
const movable = `
apiVersion: v1
kind: Secret
metadata: {name: packet}
stringData: {PACKET_API_KEY: "<token>", METAL_API_URL: "<url>"}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: nomad}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [172.26.0.0/16]}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketCluster, name: nomad}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: nomad}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketCluster
metadata: {name: nomad}
spec: {projectID: "<project>", metro: da, credentialsRef: {name: packet}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: nomad}
spec:
  replicas: 3
  version: v1.36.3
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: nomad}
  kubeadmConfigSpec: {}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: nomad}
spec:
  clusterName: nomad
  replicas: 1
  selector: {matchLabels: {pool: a}}
  template:
    metadata: {labels: {pool: a}}
    spec:
      clusterName: nomad
      version: v1.36.3
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: nomad}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: nomad}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: nomad}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketMachineTemplate
metadata: {name: nomad}
spec: {template: {spec: {machineType: c3.small.x86, os: ubuntu_24_04}}}
`

// sharedMetal is a metal service that belongs to no plane. It records all calls that change
// something.
type sharedMetal struct {
	t                   *testing.T
	url, project, token string

	mu      sync.Mutex
	changes []string
}

func newSharedMetal(t *testing.T) *sharedMetal {
	t.Helper()
	home := metal.Home{Dir: t.TempDir()}
	server, err := metal.Open(t.Context(), metal.Options{Home: home, Driver: memory.New, DriverName: "memory", Speed: 100})
	if err != nil {
		t.Fatal(err)
	}
	m := &sharedMetal{t: t}
	handler := server.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.note(r)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	m.url = web.URL + "/metal/v1"
	if m.project, err = server.DefaultProject(); err != nil {
		t.Fatal(err)
	}
	if m.token, err = home.Token(m.project); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *sharedMetal) note(r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = append(m.changes, r.Method+" "+r.URL.Path)
}

// changed returns the changes since the last call.
func (m *sharedMetal) changed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.changes
	m.changes = nil
	return out
}

func (m *sharedMetal) get(path string, into any) {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, m.url+path, http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", m.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		m.t.Fatal(err)
	}
}

// devices returns all devices, each with what changes when it is modified.
func (m *sharedMetal) devices() map[string]string {
	m.t.Helper()
	var list struct {
		Devices []struct {
			ID, State string
			Tags      []string
			UpdatedAt string                         `json:"updated_at"`
			Addresses []struct{ ID, Address string } `json:"ip_addresses"`
		}
	}
	m.get("/projects/"+m.project+"/devices?per_page=1000", &list)
	out := map[string]string{}
	for _, d := range list.Devices {
		var events struct{ Meta struct{ Total int } }
		m.get("/devices/"+d.ID+"/events", &events)
		out[d.ID] = fmt.Sprintf("%s, %d events, changed at %s, addresses %v, tags %v", d.State, events.Meta.Total, d.UpdatedAt, d.Addresses, d.Tags)
	}
	return out
}

// side is one of the planes.
type side struct {
	*plane
	client client.Client
}

func newSide(t *testing.T, p *plane) *side {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(p.config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &side{plane: p, client: c}
}

func (s *side) kubeconfig() clusterctl.Kubeconfig {
	return clusterctl.Kubeconfig{Path: filepath.Join(s.home, "kubeconfig")}
}

// missingUntilReady returns what is missing until the cluster and all its machines are ready.
func (s *side) missingUntilReady(machines int) string {
	cluster, packet := &clusterv1.Cluster{}, &infrav1.PacketCluster{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "nomad"}
	for obj, wants := range map[client.Object][]string{
		cluster: {clusterv1.ClusterAvailableCondition, clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterWorkerMachinesReadyCondition},
		packet:  {clusterv1.ReadyCondition, infrav1.EndpointServed},
	} {
		if err := s.client.Get(s.t.Context(), key, obj); err != nil {
			return err.Error()
		}
		for _, want := range wants {
			if c := meta.FindStatusCondition(obj.(interface{ GetConditions() []metav1.Condition }).GetConditions(), want); c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Sprintf("%T: %s is %+v", obj, want, c)
			}
		}
	}
	list := &infrav1.PacketMachineList{}
	if err := s.client.List(s.t.Context(), list); err != nil {
		return err.Error()
	}
	for i := range list.Items {
		for _, want := range []string{clusterv1.ReadyCondition, infrav1.BootstrapExecSucceeded} {
			if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, want) {
				return fmt.Sprintf("machine %s: %s: %+v", list.Items[i].Name, want, list.Items[i].Status.Conditions)
			}
		}
	}
	if len(list.Items) != machines {
		return fmt.Sprintf("%d machines, want %d", len(list.Items), machines)
	}
	return ""
}

func (s *side) awaitWell(machines int) {
	s.t.Helper()
	last := ""
	defer func() {
		if s.t.Failed() {
			s.t.Log(last)
		}
	}()
	s.await(fmt.Sprintf("the cluster is well, with %d machines", machines), func() bool {
		last = s.missingUntilReady(machines)
		return last == ""
	})
}

// providerIDs returns the provider IDs of the machines.
func (s *side) providerIDs() []string {
	s.t.Helper()
	list := &infrav1.PacketMachineList{}
	if err := s.client.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, m := range list.Items {
		out = append(out, strings.TrimPrefix(*m.Spec.ProviderID, "equinixmetal://"))
	}
	slices.Sort(out)
	return out
}

// remainingObjects returns the existing objects of the cluster.
func (s *side) remainingObjects() []string {
	s.t.Helper()
	kinds := "clusters,machines,machinesets,machinedeployments,kubeadmcontrolplanes,kubeadmconfigs,kubeadmconfigtemplates,packetclusters,packetmachines,packetmachinetemplates,secrets"
	return strings.Fields(s.must("kubectl", "get", kinds, "-o", "name").stdout)
}

// testMove moves a running cluster from one plane to another with clusterctl. Its machines must not
// be affected.
func testMove(t *testing.T, from, to *plane) {
	ctrl.SetLogger(logr.Discard()) // avoids a warning of clusterctl's client
	m := newSharedMetal(t)
	source, target := newSide(t, from), newSide(t, to)
	source.apply(strings.NewReplacer("<token>", m.token, "<url>", m.url, "<project>", m.project).Replace(movable))
	source.awaitWell(4)
	ids := source.providerIDs()
	before := m.devices()
	m.changed()

	c, err := clusterctl.New(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Move(t.Context(), clusterctl.MoveOptions{FromKubeconfig: source.kubeconfig(), ToKubeconfig: target.kubeconfig(), Namespace: metav1.NamespaceDefault}); err != nil {
		t.Fatalf("moving: %v", err)
	}
	target.awaitWell(4)
	if left := source.remainingObjects(); len(left) > 0 {
		t.Errorf("%v stay at the source", left)
	}
	if diff := cmp.Diff(ids, target.providerIDs()); diff != "" {
		t.Errorf("machines run on other devices (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before, m.devices()); diff != "" {
		t.Errorf("devices were touched (-before +after):\n%s", diff)
	}
	if changed := m.changed(); len(changed) > 0 {
		t.Errorf("the API was asked for changes: %v", changed)
	}
	target.connect(t.Context(), c, 4)
	target.checkMovedCluster(m)
}

func (s *side) apply(manifests string) {
	s.t.Helper()
	cmd := s.command("kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("applying: %v\n%s", err, out)
	}
}

// connect connects to the cluster with the kubeconfig from clusterctl.
func (s *side) connect(ctx context.Context, c clusterctl.Client, nodes int) {
	s.t.Helper()
	kubeconfig, err := c.GetKubeconfig(ctx, clusterctl.GetKubeconfigOptions{Kubeconfig: s.kubeconfig(), Namespace: metav1.NamespaceDefault, WorkloadClusterName: "nomad"})
	if err != nil {
		s.t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "nomad-kubeconfig"}, secret); err != nil || string(secret.Data["value"]) != kubeconfig {
		s.t.Errorf("the kubeconfig is not that of the Secret: %v", err)
	}
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if got := strings.Fields(s.must("kubectl", "--kubeconfig", file, "get", "nodes", "-o", "name").stdout); len(got) != nodes {
		s.t.Errorf("nodes: %v, want %d", got, nodes)
	}
}

// checkMovedCluster changes the moved cluster, and then deletes it.
func (s *side) checkMovedCluster(m *sharedMetal) {
	s.t.Helper()
	s.must("kubectl", "scale", "machinedeployment", "nomad", "--replicas=2")
	s.awaitWell(5)
	if got := len(m.devices()); got != 5 {
		s.t.Errorf("%d devices, want 5", got)
	}
	s.must("kubectl", "delete", "clusters.cluster.x-k8s.io", "nomad", "--timeout=3m")
	if left := m.devices(); len(left) > 0 {
		s.t.Errorf("devices are left: %v", left)
	}
}
