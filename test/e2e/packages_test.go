package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controllers select the bundle of each cluster. The registry that they name does not exist: the
// plane's own replaces it.
const controllers = `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: PackageBundleController
metadata: {name: billy, namespace: eksa-packages}
spec:
  logLevel: 4
  activeBundle: "v1-36-1"
  upgradeCheckInterval: "24h"
  source: {registry: registry.example.com/eks-anywhere, repository: eks-anywhere-packages-bundles}
---
apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: PackageBundleController
metadata: {name: tlhowe, namespace: eksa-packages}
spec: {activeBundle: "v1-36-1"}
`

// hellos are named after their clusters.
const hellos = `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: Package
metadata: {name: billy-my, namespace: eksa-packages}
spec: {packageName: hello-eks-anywhere}
---
apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: Package
metadata: {name: tlhowe-my, namespace: eksa-packages}
spec: {packageName: hello-eks-anywhere}
`

// testSecondCluster creates a cluster from the shipped template.
func testSecondCluster(_ *testing.T, h *herds) {
	h.tlhowe = h.apply("../../templates/cluster-template-local.yaml", map[string]string{"CLUSTER_NAME": "tlhowe", "KUBERNETES_VERSION": newKubernetes})
	h.tlhowe.awaitAvailable()
}

func (f *fleet) showPackages(t *testing.T) {
	t.Log(f.drover("kubectl", "get", "pbc,packagebundles,packages,helmreleaseproxies", "-A", "-o", "yaml").stdout)
}

// file writes a text for a command to read.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// page returns the response of a Service of the cluster.
func (c *workload) page(service string) string {
	direct, err := c.Direct(c.t.Context())
	if err != nil {
		return err.Error()
	}
	body, err := direct.CoreV1().Services("default").ProxyGet("http", service, "80", "/", nil).DoRaw(c.t.Context())
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func testPackagesInstalled(t *testing.T, h *herds) {
	h.billy.must("apply", "package", "-f", file(t, controllers))
	h.billy.await("the clusters use their bundles", func() bool {
		r := h.billy.drover("get", "pbc", "-o", "yaml")
		return strings.Count(r.stdout, "state: active")+strings.Count(r.stdout, "state: upgrade available") == 2
	})
	h.billy.must("apply", "packages", "-f", file(t, hellos), "--wait", "5m")
	for _, c := range []*workload{h.billy, h.tlhowe} {
		if page := c.page("my"); !strings.Contains(page, "hello-eks-anywhere 0.1.0") {
			t.Errorf("%s answers:\n%s", c.Name, page)
		}
		direct, err := c.Direct(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The labels that helm list uses.
		records, err := direct.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=my,status=deployed"})
		if err != nil || len(records.Items) != 1 || records.Items[0].Type != "helm.sh/release.v1" {
			t.Errorf("Helm would not find the release on %s: %v, %v", c.Name, records, err)
		}
	}
}

func testPackageConfig(t *testing.T, h *herds) {
	changed := strings.Replace(hellos, "spec: {packageName: hello-eks-anywhere}", `spec: {packageName: hello-eks-anywhere, config: "title: Hello, Billy"}`, 1)
	h.billy.must("apply", "packages", "-f", file(t, changed), "--wait", "5m")
	h.billy.await("the page has the new title", func() bool { return strings.Contains(h.billy.page("my"), "Hello, Billy") })
	if page := h.tlhowe.page("my"); strings.Contains(page, "Billy") {
		t.Errorf("the other cluster greets Billy too:\n%s", page)
	}
	wrong := strings.Replace(hellos, "spec: {packageName: hello-eks-anywhere}", `spec: {packageName: hello-eks-anywhere, config: "titel: Hello"}`, 1)
	if r := h.billy.drover("apply", "packages", "-f", file(t, wrong)); r.code != 1 || !strings.Contains(r.stderr, "Additional property titel is not allowed") {
		t.Errorf("a config with a wrong name ends with %d:\n%s", r.code, r.stderr)
	}
}

func testBundleUpgrade(t *testing.T, h *herds) {
	for _, step := range [][2]string{{"v1-36-2", "0.2.0"}, {"v1-36-1", "0.1.0"}} {
		bundle, version := step[0], step[1]
		h.billy.must("upgrade", "packages", "--cluster", "billy", "--bundle-version", bundle, "--wait", "5m")
		h.billy.await(bundle+" is on billy", func() bool { return strings.Contains(h.billy.page("my"), "hello-eks-anywhere "+version) })
		if page := h.tlhowe.page("my"); !strings.Contains(page, "hello-eks-anywhere 0.1.0") {
			t.Errorf("tlhowe, whose bundle did not change, answers:\n%s", page)
		}
	}
}

func testPackageDependency(t *testing.T, h *herds) {
	h.tlhowe.must("install", "package", "notes", "--package-name", "notes", "--cluster", "tlhowe", "--set", "title=Things to do", "--wait", "5m")
	if page := h.tlhowe.page("notes"); !strings.Contains(page, "Things to do is open.") {
		t.Errorf("the page has no first note:\n%s", page)
	}
	if got := h.tlhowe.must("get", "packages", "--cluster", "tlhowe").stdout; !strings.Contains(got, "notes-store") {
		t.Errorf("what notes needs is no package:\n%s", got)
	}
	h.tlhowe.must("delete", "package", "notes", "--cluster", "tlhowe", "--wait", "3m")
	h.tlhowe.await("what was only there for notes is gone", func() bool {
		return !strings.Contains(h.tlhowe.must("get", "packages", "--cluster", "tlhowe").stdout, "notes-store")
	})
}

func testPackageUninstalled(t *testing.T, billy *workload) {
	billy.must("delete", "package", "billy-my", "--cluster", "billy", "--wait", "3m")
	direct, err := billy.Direct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.CoreV1().Services("default").Get(t.Context(), "my", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Service of an uninstalled package: %v", err)
	}
}

func testClusterGoes(_ *testing.T, h *herds) {
	h.must("kubectl", "delete", "clusters.cluster.x-k8s.io", "tlhowe", "--timeout=5m")
	h.must("delete", "package", "tlhowe-my", "--cluster", "tlhowe", "--wait", "3m")
	h.must("kubectl", "delete", "pbc", "tlhowe", "-n", "eksa-packages", "--timeout=3m")
}
