package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/test/clustertest"
)

const (
	oldKubernetes = "v1.35.4"
	newKubernetes = "v1.36.3"
	// sshKey is a public key without a private key.
	sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMK9QNgHbzUxz9x16/jhrqHh1MUIOuN8yg/AtPV/DTMA herder"
)

// TestClustersOnLocalMachines follows a cluster of real machines from existing manifests to its
// deletion. After its upgrade, it gets packages of the shipped catalog together with a second
// cluster, each with its own bundle.
func TestClustersOnLocalMachines(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.must("kubectl", "apply", "-f", "../../templates/cni.yaml")
	h := &herds{fleet: f, billy: f.apply("testdata/machines/cluster.yaml", map[string]string{
		"CLUSTER_NAME": "billy", "KUBERNETES_VERSION": oldKubernetes, "CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1",
		"METRO": "da", "CONTROLPLANE_NODE_TYPE": "c3.small.x86", "WORKER_NODE_TYPE": "c3.small.x86", "SSH_KEY": sshKey,
	})}
	for _, step := range []struct {
		name string
		run  func(*testing.T, *herds)
	}{
		{"manifests for the original provider reach Ready", onBilly(testReachesReady)},
		{"kubeconfigs are handed out", onBilly(testKubeconfigs)},
		{"pods reach each other through a Service by its DNS name", onBilly(testPodNetwork)},
		{"an add-on lives its whole life", onBilly(testAddon)},
		{"workers scale up and down", onBilly(testScale)},
		{"a new Kubernetes rolls the machines", onBilly(testUpgrade)},
		{"etcd is lost and restored", onBilly(testEtcdDrill)},
		{"a quiet cluster causes no writes", onBilly(testQuiet)},
		{"a second cluster is ready", testSecondCluster},
		{"packages named after their clusters are installed there", testPackagesInstalled},
		{"a new config is on the cluster", testPackageConfig},
		{"a bundle is upgraded and brought back on one cluster only", testBundleUpgrade},
		{"a package brings what it needs, and takes it away again", testPackageDependency},
		{"a package is uninstalled", onBilly(testPackageUninstalled)},
		{"a cluster goes with its packages installed", testClusterGoes},
		{"deletion leaves nothing", onBilly(testDeletion)},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, h.in(t)) }) {
			f.showPackages(t)
			return
		}
	}
}

// herds are the clusters of the test.
type herds struct {
	*fleet

	// billy is there from the start, tlhowe only for packages.
	billy, tlhowe *workload
}

func (h *herds) in(t *testing.T) *herds {
	h.billy = h.billy.in(t)
	h.fleet = h.billy.fleet
	if h.tlhowe != nil {
		h.tlhowe = h.tlhowe.in(t)
	}
	return h
}

// onBilly is a step for the first cluster alone.
func onBilly(run func(*testing.T, *workload)) func(*testing.T, *herds) {
	return func(t *testing.T, h *herds) { run(t, h.billy) }
}

func testReachesReady(t *testing.T, c *workload) {
	c.awaitAvailable()
	nodes := c.Nodes(t.Context())
	if len(nodes) != 2 {
		t.Fatalf("the cluster has nodes %v", names(nodes))
	}
	for _, n := range nodes {
		if n.Status.NodeInfo.KubeletVersion != oldKubernetes || !strings.HasPrefix(n.Spec.ProviderID, "equinixmetal://") {
			t.Errorf("node %s runs %s and has provider ID %q", n.Name, n.Status.NodeInfo.KubeletVersion, n.Spec.ProviderID)
		}
	}
}

func testKubeconfigs(t *testing.T, c *workload) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(c.must("kubeconfig", c.Name).stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	got := c.must("kubectl", "--kubeconfig", file, "get", "nodes", "-o", "name").stdout
	if len(strings.Fields(got)) != 2 {
		t.Errorf("with the kubeconfig that was handed out there are nodes %q", got)
	}
}

func testPodNetwork(t *testing.T, c *workload) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(c.must("kubeconfig", c.Name).stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("kubectl", "--kubeconfig", file, "apply", "-f", "../../docs/examples/web.yaml")
	defer c.must("kubectl", "--kubeconfig", file, "delete", "-f", "../../docs/examples/web.yaml")
	direct, err := c.Direct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := direct.BatchV1().Jobs("default")
	c.await("both web servers have answered a client on the worker", func() bool {
		job, err := jobs.Get(t.Context(), "client", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 1
	})
}

func testScale(t *testing.T, c *workload) {
	for _, n := range []int32{2, 1} {
		md := &clusterv1.MachineDeployment{}
		c.patch("worker-a", md, func() { md.Spec.Replicas = &n })
		c.await(fmt.Sprintf("the cluster has %d workers", n), func() bool {
			return len(c.Machines(t.Context())) == int(n)+1 && len(c.Nodes(t.Context())) == int(n)+1 && len(c.devices()) == int(n)+1 && c.Available(t.Context())
		})
	}
}

func testUpgrade(t *testing.T, c *workload) {
	before := names(c.Nodes(t.Context()))
	cp := &controlplanev1.KubeadmControlPlane{}
	c.patch("control-plane", cp, func() { cp.Spec.Version = newKubernetes })
	md := &clusterv1.MachineDeployment{}
	c.patch("worker-a", md, func() { md.Spec.Template.Spec.Version = newKubernetes })
	c.await("all nodes run the new Kubernetes", func() bool {
		nodes := c.Nodes(t.Context())
		return len(nodes) == 2 && len(c.Machines(t.Context())) == 2 && !slices.ContainsFunc(nodes, func(n corev1.Node) bool {
			return n.Status.NodeInfo.KubeletVersion != newKubernetes
		})
	})
	c.awaitAvailable()
	for _, name := range names(c.Nodes(t.Context())) {
		if slices.Contains(before, name) {
			t.Errorf("node %s was there before the upgrade: machines were to be replaced", name)
		}
	}
}

// testQuiet checks that nothing that a user can see of the cluster changes.
func testQuiet(t *testing.T, c *workload) {
	before := c.versions()
	var after map[string]string
	for range 3 { // the last writes of the upgrade may still arrive
		time.Sleep(quietFor) // nothing must happen
		if after = c.versions(); fmt.Sprint(after) == fmt.Sprint(before) {
			return
		}
		before, after = after, before
	}
	for object, version := range after {
		if before[object] != version {
			t.Errorf("%s is written to although nothing changes", object)
		}
	}
}

const quietFor = 15 * time.Second

func testDeletion(t *testing.T, c *workload) {
	c.must("kubectl", "delete", "clusters.cluster.x-k8s.io", c.Name, "--timeout=3m")
	if left := c.devices(); len(left) > 0 {
		t.Errorf("devices %v are left", left)
	}
	if left := strings.Fields(c.must("kubectl", "get", "machines,packetmachines,packetclusters,kubeadmcontrolplanes,secrets", "-o", "name").stdout); len(left) > 0 {
		t.Errorf("objects %v are left", left)
	}
	for what, left := range c.leftovers() {
		left = slices.DeleteFunc(left, func(name string) bool {
			return strings.HasSuffix(name, "drv"+c.id) || strings.HasSuffix(name, "drover-"+c.id)
		})
		if len(left) > 0 { // except the bridge and the cgroups that all machines share
			t.Errorf("%s are left: %v", what, left)
		}
	}
}

// workload is a cluster of a fleet.
type workload struct {
	*fleet
	*clustertest.Cluster
}

func (c *workload) in(t *testing.T) *workload {
	f := *c.fleet
	f.plane = c.plane.in(t)
	out := *c
	out.fleet = &f
	return &out
}

func (c *workload) awaitAvailable() {
	c.t.Helper()
	c.await("cluster "+c.Name+" is available", func() bool { return c.Available(c.t.Context()) })
}

func names(nodes []corev1.Node) []string {
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

// patch changes the object of the cluster with that suffix.
func (c *workload) patch(suffix string, obj client.Object, change func()) {
	c.t.Helper()
	if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: c.Name + "-" + suffix}, obj); err != nil {
		c.t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := c.Client.Patch(c.t.Context(), obj, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
}

// versions returns the resource versions of all objects of a cluster.
func (c *workload) versions() map[string]string {
	out := map[string]string{}
	for _, kind := range []string{
		"Cluster", "Machine", "MachineSet", "MachineDeployment",
	} {
		c.addVersions(out, "cluster.x-k8s.io/v1beta2", kind)
	}
	for _, kind := range []string{"PacketCluster", "PacketMachine", "PacketMachineTemplate"} {
		c.addVersions(out, "infrastructure.cluster.x-k8s.io/v1beta1", kind)
	}
	c.addVersions(out, "controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane")
	c.addVersions(out, "bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig")
	return out
}

func (c *workload) addVersions(out map[string]string, apiVersion, kind string) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := c.Client.List(c.t.Context(), list); err != nil {
		c.t.Fatal(err)
	}
	for _, o := range list.Items {
		out[kind+" "+o.GetName()] = o.GetResourceVersion()
	}
}
