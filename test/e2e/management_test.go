package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	planes "github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// TestManagementCluster promotes a workload cluster of one real machine to a management cluster,
// creates other clusters with it while no plane exists, loses and recovers it while they keep
// running, and deletes it.
func TestManagementCluster(t *testing.T) {
	t.Parallel()
	m := &managed{fleet: newFleet(t), dir: t.TempDir()}
	m.file, m.creator = filepath.Join(m.dir, "chief", "chief-eks-a-cluster.kubeconfig"), filepath.Join(m.dir, "creator.kubeconfig")
	steps := []struct {
		name string
		run  func(*testing.T, *managed)
	}{
		{"a workload cluster has a package", testChief},
		{"it becomes a management cluster and no plane is needed", testPromotion},
		{"it makes other clusters", testWorkloadClusters},
		{"it backs itself up", testScheduledBackups},
		{"it is lost, and recovered while the other clusters keep running", testRecovery},
		{"what a user may do is as before, and the other clusters can be changed", testRecoveredClusters},
		{"it is deleted by a command", testChiefIsDeleted},
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
	*fleet
	// dir is where commands run, and file the cluster's kubeconfig.
	dir, file string
	// machines are the names of its machines.
	machines []string
	// creator is the kubeconfig of a user who may only create clusters.
	creator string
}

func (m *managed) in(t *testing.T) *managed {
	m.t = t
	return m
}

// here runs a command in the directory of the cluster's files.
func (m *managed) here(args ...string) result {
	m.t.Helper()
	cmd := m.command(args...)
	cmd.Dir = m.dir
	began := time.Now()
	r := m.run(cmd)
	m.t.Logf("drover %s took %s", strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	return r
}

func (m *managed) mustHere(args ...string) result {
	m.t.Helper()
	r := m.here(args...)
	if r.code != 0 {
		m.t.Fatalf("drover %s ended with %d:\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// kubectl runs on the management cluster.
func (m *managed) kubectl(args ...string) string {
	m.t.Helper()
	return m.must(append([]string{"kubectl", "--kubeconfig", m.file}, args...)...).stdout
}

// show prints the cluster's own state.
func (m *managed) show() {
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"describe", "pods", "-n", "drover-system"},
		{"logs", "-n", "drover-system", "deployment/drover-manager", "--tail=60"},
		{"get", "clusters.anywhere.eks.amazonaws.com,clusters.cluster.x-k8s.io,machines,packetmachines,helmchartproxies,helmreleaseproxies", "-A"},
	} {
		m.t.Log(m.drover(append([]string{"kubectl", "--kubeconfig", m.file}, args...)...).stdout)
	}
}

// network is an add-on that installs the Pod network from the registry of a management plane.
func network(t *testing.T, registry string) string {
	t.Helper()
	return file(t, `apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: cni}
spec:
  clusterSelector: {matchLabels: {cni: drover}}
  repoURL: oci://`+registry+`/charts
  chartName: cni
  releaseName: cni
  namespace: kube-system
  options: {wait: true}
`)
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

// chiefSpec is the spec of the cluster. Packages have no other machine than its control plane.
const chiefSpec = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: chief}
spec:
  kubernetesVersion: "1.36"
  management: false
  controlPlaneConfiguration: {count: 1}
  datacenterRef: {kind: DockerDatacenterConfig, name: chief}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: chief}
`

// chiefPackage is on the cluster itself.
const chiefPackage = `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: Package
metadata: {name: my, namespace: eksa-packages-chief}
spec: {packageName: hello-eks-anywhere, config: "title: %s"}
`

func testChief(t *testing.T, m *managed) {
	m.mustHere("create", "cluster", "-f", file(t, chiefSpec), "-k", filepath.Join(m.home, "kubeconfig"))
	m.must("kubectl", "wait", "--for=condition=Ready", "--timeout=3m", "-n", "eksa-packages", "packagebundlecontroller/chief")
	m.must("apply", "packages", "-f", file(t, fmt.Sprintf(chiefPackage, "Before")), "--wait", "5m")
	m.machines = m.devices()
}

func testPromotion(t *testing.T, m *managed) {
	m.mustHere("promote", "cluster", "chief", "-k", filepath.Join(m.home, "kubeconfig"))
	if left := m.must("kubectl", "get", "clusters.anywhere.eks.amazonaws.com,clusters.cluster.x-k8s.io,machines,hcp,hrp,packages,pbc", "-A", "-o", "name").stdout; left != "" {
		t.Errorf("the plane still has %s", left)
	}
	m.must("down")
	m.kubectl("apply", "-f", file(t, fmt.Sprintf(chiefPackage, "After")))
	m.await("the manager on the cluster goes on with its packages", func() bool {
		return strings.Contains(m.drover("kubectl", "--kubeconfig", m.file, "get", "--raw", "/api/v1/namespaces/default/services/http:my:80/proxy/").stdout, "After")
	})
	if now := m.devices(); !slices.Equal(now, m.machines) {
		t.Errorf("the machines were %v, and are %v", m.machines, now)
	}
}

// flockSpec is the spec of a cluster whose creator has no other privileges.
const flockSpec = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: flock, namespace: team-a}
spec:
  kubernetesVersion: "1.36"
  managementCluster: {name: chief}
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [%s]
  datacenterRef: {kind: DockerDatacenterConfig, name: flock}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: flock, namespace: team-a}
`

// testWorkloadClusters creates one cluster from manifests, with an add-on, and one from a spec.
func testWorkloadClusters(t *testing.T, m *managed) {
	out, err := clustertest.Render("../../templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": "herd", "KUBERNETES_VERSION": newKubernetes, "WORKER_MACHINE_COUNT": "0", "PROJECT_ID": m.project,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.kubectl("apply", "-f", network(t, m.registry()))
	m.kubectl("apply", "-f", file(t, string(out)))
	m.must("create", "user", "creator", "-n", team, "--local-machines", "-o", m.creator, "-k", m.file)
	m.mustHere("create", "cluster", "-f", file(t, fmt.Sprintf(flockSpec, workersText(1))), "-k", m.creator)
	m.kubectl("wait", "--for=condition=Available", "--timeout=5m", "clusters.cluster.x-k8s.io/herd")
	if now := m.devices(); len(now) != len(m.machines)+3 {
		t.Errorf("there are devices %v, want three more than %v", now, m.machines)
	}
}

func testChiefIsDeleted(t *testing.T, m *managed) {
	m.mustHere("delete", "cluster", "chief", "--yes")
	if left := m.countResources(); left != [2]int{} {
		t.Errorf("%d machines and %d addresses are left", left[0], left[1])
	}
}
