package addon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/controllers/addons/chart"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a management plane that is also the API server of all its clusters.
type world struct {
	*testing.T

	client     client.Client
	server     *kubetest.Server
	namespace  string
	kubeconfig string
	repository *artifacttest.Repository
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	w := &world{T: t, server: kubetest.SharedWithoutWebhooks(t), repository: artifacttest.NewRepository(t, artifacttest.ServerOptions{})}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // after the server, whose binary is in the user's cache
	w.must(errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), infrav1.AddToScheme(scheme), addonsv1.AddToScheme(scheme)))
	var err error
	w.client, err = client.New(w.server.Config, client.Options{Scheme: scheme})
	w.must(err)
	w.namespace, w.kubeconfig = w.server.Namespace(t), filepath.Join(t.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*kubetest.AsKubeconfig(w.server.Config), w.kubeconfig))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) cluster(name, zone string) {
	w.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"zone": zone}}}
	cluster.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
	w.must(clustertest.Register(w.Context(), w.client, cluster, w.server.Config))
}

// run runs a command and returns its output and exit code.
func (w *world) run(stdin string, args ...string) (stdout, stderr string, code int) {
	w.Helper()
	var out, talk bytes.Buffer
	io := &ui.IO{In: strings.NewReader(stdin), Out: &out, Err: &talk}
	cmd := NewCommand(io)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&talk)
	cmd.SetArgs(append(args, "--kubeconfig", w.kubeconfig, "--namespace", w.namespace))
	code = ui.Report(&talk, cmd.ExecuteContext(w.Context()))
	return strings.ReplaceAll(out.String(), w.namespace, "NS"), strings.ReplaceAll(talk.String(), w.namespace, "NS"), code
}

// chart returns a HelmChartProxy for all clusters.
func (w *world) chart(version, values string) *addonsv1.HelmChartProxy {
	hcp := &addonsv1.HelmChartProxy{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "HelmChartProxy"},
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
	}
	hcp.Spec = addonsv1.HelmChartProxySpec{
		ChartName: "web", RepoURL: w.repository.URL, ReleaseName: "web", ReleaseNamespace: w.namespace, Version: version, ValuesTemplate: values,
	}
	return hcp
}

func (w *world) text(hcp *addonsv1.HelmChartProxy) string {
	w.Helper()
	data, err := yaml.Marshal(hcp)
	w.must(err)
	return "# a comment\n---\napiVersion: v1\nkind: ConfigMap\n---\n" + string(data)
}

func (w *world) publish(version, kind string) {
	w.Helper()
	w.repository.Publish("web", version, artifacttest.Chart(w, "web", version, map[string]string{
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {greeting: '{{ .Values.greeting }}', version: '" + version + "'}\n",
		"templates/b.yaml": "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: '{{ .Release.Name }}'}\n",
	}))
}

// apply creates a HelmChartProxy on the plane, and its releases.
func (w *world) apply(hcp *addonsv1.HelmChartProxy) {
	w.Helper()
	hcp = hcp.DeepCopy()
	hcp.Namespace = w.namespace
	hcp.Spec.Options.Timeout = &metav1.Duration{Duration: 10 * time.Minute} // as the webhook would
	there := &addonsv1.HelmChartProxy{}
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(hcp), there); err == nil {
		hcp.ResourceVersion = there.ResourceVersion
		w.must(w.client.Update(w.Context(), hcp))
	} else {
		w.must(w.client.Create(w.Context(), hcp))
	}
	c := &chart.Controller{Client: w.client, Live: w.client, Events: record.NewFakeRecorder(100), Clock: clock.RealClock{}}
	_, err := c.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
	w.must(err)
}

// install simulates the manager for the release of a cluster, and sets its status.
func (w *world) install(cluster string, ready metav1.ConditionStatus) {
	w.Helper()
	plane, err := inspect.Connect(w.server.Config)
	w.must(err)
	hcp, err := plane.FindAddOn(w.Context(), w.namespace, "web")
	w.must(err)
	r, err := plane.AddOnRelease(w.Context(), hcp, cluster)
	w.must(err)
	state := w.put(plane, r)
	before := r.DeepCopy()
	r.Status.ObservedGeneration, r.Status.Revision, r.Status.Status = r.Generation, state.Revision, state.Status
	message, reason := "", "Ready"
	if ready != metav1.ConditionTrue {
		message, reason = "the chart is broken", addonsv1.InstallOrUpgradeFailedReason
	}
	for _, name := range []string{clusterv1.ReadyCondition, addonsv1.ReleaseReady} {
		conditions.Set(r, metav1.Condition{Type: name, Status: ready, Reason: reason, Message: message})
	}
	w.must(w.client.Status().Patch(w.Context(), r, client.MergeFrom(before)))
	c := &chart.Controller{Client: w.client, Live: w.client, Events: record.NewFakeRecorder(100), Clock: clock.RealClock{}}
	_, err = c.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
	w.must(err)
}

// put installs a release on its cluster.
func (w *world) put(plane *inspect.Plane, r *addonsv1.HelmReleaseProxy) tool.State {
	w.Helper()
	packages, err := artifact.Open(artifact.Options{Dir: w.TempDir(), PlainHTTP: true})
	w.must(err)
	defer packages.Close()
	want, err := tool.Input{Sources: sources.New(w.client, w.client)}.Want(w.Context(), r)
	w.must(err)
	want.Resolved, err = packages.Resolve(w.Context(), want.Package)
	w.must(err)
	clusters := workload.New(plane, workload.Options{})
	defer clusters.Close()
	cluster, err := clusters.Get(w.Context(), index.ClusterKey(r))
	w.must(err)
	state, err := helm.New(packages).Apply(w.Context(), cluster, want)
	w.must(err)
	return state
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestDiffGroupsClustersByChange(t *testing.T) {
	w := newWorld(t)
	w.publish("1.0.0", "ServiceAccount")
	w.publish("1.1.0", "Secret")
	for name, zone := range map[string]string{"one": "a", "three": "b", "two": "a"} {
		w.cluster(name, zone)
	}
	hcp := w.chart("1.0.0", "greeting: hello")
	hcp.Spec.Overrides = []addonsv1.Override{{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "b"}}, ValuesTemplate: "greeting: moin",
	}}
	out, talk, code := w.run(w.text(hcp), "diff", "-f", "-", "--allow-plain-http")
	same(t, "a new add-on", `
NS/web
  On 2 clusters (one, two): install version 1.0.0
    + ServiceAccount NS/web
        + apiVersion: "v1"
        + kind: "ServiceAccount"
        + metadata.name: "web"
        + metadata.namespace: "NS"
    + ConfigMap NS/web
        + apiVersion: "v1"
        + data.greeting: "hello"
        + data.version: "1.0.0"
        + kind: "ConfigMap"
        + metadata.name: "web"
        + metadata.namespace: "NS"
  On cluster three: install version 1.0.0
    + ServiceAccount NS/web
        + apiVersion: "v1"
        + kind: "ServiceAccount"
        + metadata.name: "web"
        + metadata.namespace: "NS"
    + ConfigMap NS/web
        + apiVersion: "v1"
        + data.greeting: "moin"
        + data.version: "1.0.0"
        + kind: "ConfigMap"
        + metadata.name: "web"
        + metadata.namespace: "NS"
`, out)
	if code != 1 || talk != "" {
		t.Errorf("code %d, printed %q, want 1 and nothing", code, talk)
	}

	w.apply(hcp)
	w.install("one", metav1.ConditionTrue)
	out, _, code = w.run(w.text(hcp), "diff", "-f", "-", "--allow-plain-http")
	same(t, "the same again", "NS/web\n  On 3 clusters (one, three, two): no changes\n", out)
	if code != 0 {
		t.Errorf("code %d, want 0 when nothing would change", code)
	}

	hcp.Spec.Version, hcp.Spec.ClusterSelector = "1.1.0", metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}
	out, _, code = w.run(w.text(hcp), "diff", "-f", "-", "--allow-plain-http")
	same(t, "a new version for fewer clusters", `
NS/web
  On 2 clusters (one, two): upgrade version 1.1.0 (version)
    + Secret NS/web
        + apiVersion: "v1"
        + kind: "Secret"
        + metadata.name: "web"
        + metadata.namespace: "NS"
    ~ ConfigMap NS/web
        data.version: "1.0.0" → "1.1.0"
    - ServiceAccount NS/web
  On cluster three: uninstall
`, out)
	if code != 1 {
		t.Errorf("code %d, want 1 when something would change", code)
	}

	w.must(w.client.Delete(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "two-kubeconfig"}}))
	out, _, code = w.run(w.text(hcp), "diff", "-f", "-", "--allow-plain-http", "-o", "json")
	if code != 2 || !strings.Contains(out, `"error": "cluster \"two\" has no kubeconfig:`) || !strings.Contains(out, `"action": "Upgrade"`) {
		t.Errorf("code %d with an unreachable cluster, want 2 and the changes of the others:\n%s", code, out)
	}
}

func TestDiffRejectsInvalidFiles(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct{ stdin, want string }{
		"nothing of interest":       {"kind: Pod\n", "no HelmChartProxy in the standard input"},
		"a field that is unknown":   {"apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: x}\nspec: {chart: x}\n", `unknown field "spec.chart"`},
		"a field in the wrong case": {"apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: x}\nspec: {chartname: x}\n", `unknown field "spec.chartname"`},
		"another namespace":         {"apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: x, namespace: other}\n", `is in namespace "other", but --namespace is`},
		"a template that is none": {
			"apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: x}\nspec: {chartName: a, repoURL: 'https://x', valuesTemplate: '{{'}\n",
			"spec.valuesTemplate: Invalid value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, talk, code := w.run(tt.stdin, "diff", "-f", "-"); code != 2 || !strings.Contains(talk, tt.want) {
				t.Errorf("code %d, printed %q, want 2 and %q", code, talk, tt.want)
			}
		})
	}
}

func TestDiffWithoutFileExitsWithUsageError(t *testing.T) {
	w := newWorld(t)
	if _, talk, code := w.run("", "diff"); code != 2 || !strings.Contains(talk, "specify a file with -f") {
		t.Errorf("code %d, printed %q, want 2: 1 would mean that something changes", code, talk)
	}
}

func TestStatusHistoryAndRollback(t *testing.T) {
	w := newWorld(t)
	w.publish("1.0.0", "ServiceAccount")
	w.publish("1.1.0", "ServiceAccount")
	w.cluster("one", "a")
	w.cluster("two", "a")
	w.apply(w.chart("1.0.0", "greeting: hello"))
	w.install("one", metav1.ConditionTrue)
	w.apply(w.chart("1.1.0", "greeting: hello"))
	w.install("one", metav1.ConditionTrue)
	w.install("two", metav1.ConditionFalse)

	out, _, _ := w.run("", "list")
	same(t, "list", `
NAMESPACE    NAME   CHART   READY   CLUSTERS   READY ON   FAILED ON   ROLLOUT
NS   web    web     False   2          1          1           -
`, out)
	out, _, code := w.run("", "status", "web")
	if !strings.Contains(out, "NS/web: web with Helm, ready on 1 of 2 clusters\nNot ready: ") ||
		!strings.Contains(out, "two       1.1.0     2          deployed   False   the chart is broken\n") || code != 0 {
		t.Errorf("code %d, status:\n%s", code, out)
	}
	_, talk, code := w.run("", "status", "web", "--wait", "10ms")
	if code != 1 || !strings.Contains(talk, "timed out after 10ms waiting for add-on \"web\": ") {
		t.Errorf("code %d, printed %q", code, talk)
	}
	_, talk, code = w.run("", "status", "wbe")
	if code != 1 || !strings.Contains(talk, `add-on "wbe" not found in namespace "NS"; existing add-ons: NS/web`) {
		t.Errorf("code %d, printed %q", code, talk)
	}

	out, _, _ = w.run("", "history", "web", "-o", "yaml")
	if strings.Count(out, "revision: ") != 2 || !strings.Contains(out, "version: 1.0.0") || !strings.Contains(out, "current: true") {
		t.Errorf("history:\n%s", out)
	}
	out, _, _ = w.run("", "history", "web", "--cluster", "one")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(lines[1], tool.Deployed) || !strings.Contains(lines[1], "web-1.1.0") {
		t.Errorf("history on cluster one:\n%s", out)
	}
	_, talk, code = w.run("", "history", "web", "--cluster", "four")
	if code != 1 || !strings.Contains(talk, "has no release on cluster \"four\"\nTry: drover addon status web") {
		t.Errorf("code %d, printed %q", code, talk)
	}

	_, talk, code = w.run("", "rollback", "web", "--cluster", "one")
	if code != 0 || !strings.Contains(talk, "will upgrade release web on cluster one again") || !strings.Contains(talk, "revision 3 is deployed") {
		t.Errorf("code %d, printed %q", code, talk)
	}
	_, talk, code = w.run("", "rollback", "web")
	hcp := &addonsv1.HelmChartProxy{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "web"}, hcp))
	if code != 0 || hcp.Spec.Version != "1.0.0" || !strings.Contains(talk, "Restored revision 1 of add-on web") {
		t.Errorf("code %d, version %q, printed %q", code, hcp.Spec.Version, talk)
	}
	_, talk, code = w.run("", "rollback", "web", "--to", "9")
	if code != 1 || !strings.Contains(talk, "revision not found\nTry: drover addon history web") {
		t.Errorf("code %d, printed %q", code, talk)
	}
	_, talk, code = w.run("", "resume", "web")
	if code != 1 || !strings.Contains(talk, `rollout of add-on "web" is not paused`) {
		t.Errorf("code %d, printed %q", code, talk)
	}
}

func TestCompletionOffersAddonsAndClusters(t *testing.T) {
	w := newWorld(t)
	w.cluster("one", "a")
	w.apply(w.chart("1.0.0", ""))
	for name, args := range map[string][]string{
		"web\tweb in NS": {"__complete", "--namespace", w.namespace, "--kubeconfig", w.kubeconfig, "status", ""},
		"one":            {"__complete", "--namespace", w.namespace, "--kubeconfig", w.kubeconfig, "rollback", "web", "--cluster", ""},
	} {
		var out bytes.Buffer
		cmd := NewCommand(&ui.IO{Out: &out, Err: &out})
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		w.must(cmd.ExecuteContext(t.Context()))
		if got := strings.ReplaceAll(out.String(), w.namespace, "NS"); !strings.HasPrefix(got, name+"\n") && !strings.HasPrefix(got, name+"\t\n") {
			t.Errorf("offered %q, want %q", got, name)
		}
	}
}
