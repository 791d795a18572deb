package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	planes "github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// TestManagementCluster turns a cluster of one real machine into a management cluster, creates
// another cluster with it while no plane exists, and moves its objects back to a plane for
// deletion.
func TestManagementCluster(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.network()
	c := f.apply("../../templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": "chief", "KUBERNETES_VERSION": newKubernetes, "WORKER_MACHINE_COUNT": "0",
	})
	m := &managed{chief: c}
	steps := []struct {
		name string
		run  func(*testing.T, *managed)
	}{
		{"a manager runs on the cluster", testManagerOnCluster},
		{"its objects and packages move there and no plane is needed", testMoveToCluster},
		{"it makes another cluster", testWorkloadCluster},
		{"its objects move back and it is deleted", testMoveBack},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, m.in(t)) }) {
			m.in(t).show()
			return
		}
	}
}

// managed is a cluster that becomes a management cluster.
type managed struct {
	chief *workload
	// file is its kubeconfig, and config the content.
	file   string
	config *rest.Config
}

func (m *managed) in(t *testing.T) *managed {
	m.chief = m.chief.in(t)
	return m
}

// inside is a cluster as seen by the manager on the management cluster.
func (m *managed) inside(t *testing.T, name string) *workload {
	t.Helper()
	c, err := clustertest.NewClient(m.config)
	if err != nil {
		t.Fatal(err)
	}
	return &workload{fleet: m.chief.fleet, Cluster: &clustertest.Cluster{Client: c, Name: name}}
}

// kubectl runs on the management cluster.
func (m *managed) kubectl(args ...string) string {
	m.chief.t.Helper()
	return m.chief.must(append([]string{"kubectl", "--kubeconfig", m.file}, args...)...).stdout
}

// show prints the cluster's own state.
func (m *managed) show() {
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"describe", "pods", "-n", "drover-system"},
		{"logs", "-n", "drover-system", "deployment/drover-manager", "--tail=60"},
		{"get", "clusters.cluster.x-k8s.io,machines,packetmachines,helmchartproxies,helmreleaseproxies", "-A"},
	} {
		m.chief.t.Log(m.chief.drover(append([]string{"kubectl", "--kubeconfig", m.file}, args...)...).stdout)
	}
}

// network is an add-on that installs the Pod network from the registry of the managing plane.
func (f *fleet) network() {
	f.t.Helper()
	f.must("kubectl", "apply", "-f", file(f.t, `apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: cni}
spec:
  clusterSelector: {matchLabels: {cni: drover}}
  repoURL: oci://`+f.registry()+`/charts
  chartName: cni
  releaseName: cni
  namespace: kube-system
  options: {wait: true}
`))
}

// registry returns host and port of the plane's registry.
func (f *fleet) registry() string {
	f.t.Helper()
	r, err := planes.ReadRegistry(planes.Home{Dir: f.home})
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimPrefix(r.URL, "https://")
}

func (m *managed) home() metal.Home { return metal.Home{Dir: m.chief.metalHome()} }

// install performs all steps of a command that turns the cluster into a management cluster.
func (m *managed) install(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	image, err := bootstrap.Image(program)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := bootstrap.Deliver(ctx, m.home(), image); err != nil {
		return err
	}
	m.chief.t.Logf("the image is on the machine after %s", time.Since(begin))
	reach, err := bootstrap.ReadMetal(m.home())
	if err != nil {
		return err
	}
	return bootstrap.Install(ctx, m.config, bootstrap.Options{
		Image: image.Reference, Metal: &reach, BundleKey: planes.Home{Dir: m.chief.home}.BundleKey(),
		Registry: m.chief.registry(),
	})
}

func testManagerOnCluster(t *testing.T, m *managed) {
	m.chief.awaitAvailable()
	m.file = filepath.Join(m.chief.home, "chief.kubeconfig")
	if err := os.WriteFile(m.file, []byte(m.chief.must("kubeconfig", "chief").stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.config, err = clientcmd.BuildConfigFromFlags("", m.file); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"first", "second"} { // the second has nothing to do
		begin := time.Now()
		if err := m.install(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("the %s installation took %s", run, time.Since(begin))
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := bootstrap.Ready(ctx, m.config, func(s string) { t.Log(s) }); err != nil {
		t.Fatal(err)
	}
	t.Logf("the manager is ready after another %s", time.Since(begin))
}

// chiefPackages are on the management cluster itself.
const chiefPackages = `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: PackageBundleController
metadata: {name: chief, namespace: eksa-packages}
spec: {activeBundle: v1-36-1}
---
apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: Package
metadata: {name: chief-my, namespace: eksa-packages}
spec: {packageName: hello-eks-anywhere, config: "title: %s"}
`

func testMoveToCluster(t *testing.T, m *managed) {
	m.kubectl("taint", "nodes", "--all", "node-role.kubernetes.io/control-plane-") // packages have no other machine
	m.chief.must("apply", "packages", "-f", file(t, fmt.Sprintf(chiefPackages, "Before")), "--wait", "5m")
	begin := time.Now()
	if err := bootstrap.Move(t.Context(), m.chief.config(), m.config, "chief"); err != nil {
		t.Fatal(err)
	}
	t.Logf("the move took %s", time.Since(begin))
	if left := m.chief.must("kubectl", "get", "clusters.cluster.x-k8s.io,machines,hcp,hrp,packages,pbc", "-A", "-o", "name").stdout; left != "" {
		t.Errorf("the plane still has %s", left)
	}
	m.chief.must("down")
	inside := m.inside(t, "chief")
	inside.awaitAvailable()
	m.kubectl("apply", "-f", file(t, fmt.Sprintf(chiefPackages, "After")))
	inside.await("the manager on the cluster goes on with its packages", func() bool { return strings.Contains(inside.page("my"), "After") })
}

func testWorkloadCluster(t *testing.T, m *managed) {
	out, err := clustertest.Render("../../templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": "herd", "KUBERNETES_VERSION": newKubernetes, "WORKER_MACHINE_COUNT": "0", "PROJECT_ID": m.chief.project,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.kubectl("apply", "-f", file(t, string(out)))
	herd := m.inside(t, "herd")
	herd.awaitAvailable()
	m.kubectl("delete", "clusters.cluster.x-k8s.io", "herd", "--timeout=5m")
	if left := m.chief.devices(); len(left) != 1 {
		t.Errorf("there are devices %v, want that of the management cluster", left)
	}
}

func testMoveBack(t *testing.T, m *managed) {
	m.chief.must("up", "--metal", "local")
	if err := bootstrap.Move(t.Context(), m.config, m.chief.config(), "chief"); err != nil {
		t.Fatal(err)
	}
	m.chief.awaitAvailable()
	m.chief.must("kubectl", "delete", "package", "chief-my", "-n", "eksa-packages", "--timeout=3m")
	m.chief.must("kubectl", "delete", "clusters.cluster.x-k8s.io", "chief", "--timeout=5m")
	m.chief.must("kubectl", "delete", "pbc", "chief", "-n", "eksa-packages", "--timeout=3m")
	if left := m.chief.devices(); len(left) != 0 {
		t.Errorf("devices %v are left", left)
	}
}
