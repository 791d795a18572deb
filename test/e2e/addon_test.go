package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// sleeper is a chart whose Pods run on any machine.
const sleeper = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: ` + node.ToolsImage + `, command: [sleep, infinity]}]
`

// testAddon installs a chart from the plane's own registry on the cluster, and follows it until it
// is removed.
func testAddon(t *testing.T, c *workload) {
	archive := filepath.Join(t.TempDir(), "sleeper-1.0.0.tgz")
	chart := artifacttest.Chart(t, "sleeper", "1.0.0", map[string]string{"values.yaml": "replicas: 1\n", "templates/all.yaml": sleeper})
	if err := os.WriteFile(archive, chart, 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("registry", "push", archive)
	manifest := filepath.Join(t.TempDir(), "sleeper.yaml")
	write := func(replicas string) {
		text := strings.NewReplacer("$URL", c.charts(), "$REPLICAS", replicas).Replace(`apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: sleeper}
spec:
  clusterSelector: {}
  repoURL: $URL
  chartName: sleeper
  version: 1.0.0
  releaseName: sleeper
  namespace: sleepers
  valuesTemplate: "replicas: $REPLICAS"
  options: {wait: true}
  drift: {mode: Correct}
`)
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	direct, err := c.Direct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deployments := direct.AppsV1().Deployments("sleepers")
	ready := func(n int32) func() bool {
		return func() bool {
			d, err := deployments.Get(t.Context(), "sleeper", metav1.GetOptions{})
			return err == nil && isReady(d, n)
		}
	}

	write("1")
	c.must("kubectl", "apply", "-f", manifest)
	c.must("addon", "status", "sleeper", "--wait", "3m")
	if !ready(1)() {
		t.Error("the add-on is ready before its Pods are")
	}

	write("2")
	if r := c.drover("addon", "diff", "-f", manifest); r.code != 1 || !strings.Contains(r.stdout, "spec.replicas: 1 → 2") {
		t.Errorf("the diff ended with %d and says:\n%s%s", r.code, r.stdout, r.stderr)
	}
	c.must("kubectl", "apply", "-f", manifest)
	c.await("the upgrade is on the cluster", ready(2))
	c.must("addon", "status", "sleeper", "--wait", "3m")

	if _, err := deployments.Patch(t.Context(), "sleeper", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await("drift is corrected", ready(2))

	c.must("addon", "rollback", "sleeper")
	c.await("the first revision is back", ready(1))

	c.must("kubectl", "delete", "helmchartproxy", "sleeper", "--timeout=2m")
	if _, err := deployments.Get(t.Context(), "sleeper", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the add-on is gone, and its Deployment is not: %v", err)
	}
}

func isReady(d *appsv1.Deployment, replicas int32) bool {
	return *d.Spec.Replicas == replicas && d.Status.ReadyReplicas == replicas && d.Status.ObservedGeneration == d.Generation
}

// charts returns the location of the plane's charts for a HelmChartProxy.
func (p *plane) charts() string {
	p.t.Helper()
	for line := range strings.Lines(p.must("registry", "status", "-o", "yaml").stdout) {
		if url, ok := strings.CutPrefix(line, "charts: "); ok {
			return strings.TrimSpace(url)
		}
	}
	p.t.Fatal("the registry does not say where charts are")
	return ""
}
