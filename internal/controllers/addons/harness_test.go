package addons_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

func TestMain(m *testing.M) { managertest.Main(m, workloads.Stop) }

// workloads are API servers that all tests of the package install things on, in namespaces of their
// own.
var workloads kubetest.Servers

const numberOfWorkloads = 3

// world is a namespace of the management plane with bare API servers as clusters.
type world struct {
	*testing.T
	client.Client

	server *kubetest.Server
	// identity is the manager's client configuration.
	identity  *rest.Config
	webhook   string
	cache     string
	namespace string
	// target is the namespace on the workload clusters.
	target  string
	program managertest.Program
	manager *kubetest.Process
	command *exec.Cmd
	// flags are additional flags of the manager.
	flags           []string
	health, metrics string
	// temp is the manager's directory for temporary files.
	temp string
}

var management struct {
	sync.Once
	server  *kubetest.Server
	webhook string
}

// newWorld returns a world with a running manager.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, managertest.Command)
}

func newWorldWith(t *testing.T, program managertest.Program) *world {
	t.Helper()
	w := emptyWorld(t)
	w.program = program
	w.start()
	w.register()
	return w
}

// emptyWorld has neither a manager nor clusters.
func emptyWorld(t *testing.T) *world {
	t.Helper()
	management.Do(func() {
		management.webhook = kubetest.FreeAddress(t)
		management.server = kubetest.Shared(t, install.Options{WebhookURL: "https://" + management.webhook})
	})
	if management.server == nil {
		t.Fatal("the management plane did not start")
	}
	workloads.Start(t, numberOfWorkloads)
	return worldOn(t, management.server, management.webhook, management.server.Namespace(t))
}

// worldOn is a namespace of any management plane.
func worldOn(t *testing.T, server *kubetest.Server, webhook, namespace string) *world {
	t.Helper()
	w := &world{
		T: t, server: server, webhook: webhook, namespace: namespace, target: "on-" + namespace, cache: filepath.Join(t.TempDir(), "charts"),
		program: managertest.Command,
	}
	w.identity = managertest.Identity(t, server)
	var err error
	if w.Client, err = clustertest.NewClient(w.server.Config); err != nil {
		t.Fatal(err)
	}
	return w
}

// launch starts a manager. The test fails if its roles deny a request.
func (w *world) launch() *kubetest.Process {
	w.Helper()
	w.health, w.metrics = kubetest.FreeAddress(w), kubetest.FreeAddress(w)
	w.temp = w.TempDir()
	flags := append([]string{
		"--kubeconfig=" + kubetest.Kubeconfig(w, w.identity), "--health-addr=" + w.health, "--metrics-addr=" + w.metrics, "--insecure-metrics", "--webhook-addr=" + w.webhook,
		"--install=false", "--v=5", "--log-format=json", "--chart-cache=" + w.cache, "--watch-namespace=" + w.namespace,
	}, w.flags...)
	w.command = w.program(w, flags, "TMPDIR="+w.temp)
	return managertest.Start(w, w.command)
}

// arguments returns the manager's command line, which every user of the machine can see.
func (w *world) arguments() []byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.command.Process.Pid))
	if err != nil {
		w.Fatal(err)
	}
	return text
}

func (w *world) background() context.Context { return context.WithoutCancel(w.Context()) }

func clusterNamed(namespace, name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// start runs the manager and waits until it is ready.
func (w *world) start() {
	w.Helper()
	w.manager = w.launch()
	w.until("the manager is ready", func() bool { return managertest.Ready(w.health) })
}

// register creates Clusters a, b, c.
func (w *world) register() {
	w.Helper()
	for i, s := range workloads.All() {
		name := string(rune('a' + i))
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"name": name, "all": "yes"}}}
		if err := clustertest.Register(w.Context(), w.Client, cluster, s.Config); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	kubetest.Eventually(w, what, is, w.describe)
}

// describe returns the state of the releases.
func (w *world) describe() string {
	var out strings.Builder
	for _, r := range w.releases() {
		fmt.Fprintf(&out, "\n%s: %s revision %d", r.Name, r.Status.Status, r.Status.Revision)
		for _, c := range r.Status.Conditions {
			fmt.Fprintf(&out, "; %s %s %s %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	charts := &addonsv1.HelmChartProxyList{}
	if err := w.List(w.Context(), charts, client.InNamespace(w.namespace)); err == nil {
		for _, p := range charts.Items {
			for _, c := range p.Status.Conditions {
				fmt.Fprintf(&out, "\n%s: %s %s %s %s", p.Name, c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return out.String()
}

func (w *world) create(o client.Object) {
	w.Helper()
	o.SetNamespace(w.namespace)
	if err := w.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

func (w *world) releases() []addonsv1.HelmReleaseProxy {
	list := &addonsv1.HelmReleaseProxyList{}
	if err := w.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		return nil
	}
	return list.Items
}

func (w *world) ready(p *addonsv1.HelmChartProxy) bool {
	return w.Get(w.Context(), client.ObjectKeyFromObject(p), p) == nil &&
		p.Status.ObservedGeneration == p.Generation && conditions.IsTrue(p, clusterv1.ReadyCondition)
}

// awaitReady waits until a proxy is ready on a number of clusters.
func (w *world) awaitReady(p *addonsv1.HelmChartProxy, clusters int) {
	w.Helper()
	w.until(p.Name+" is ready", func() bool { return w.ready(p) && len(p.Status.MatchingClusters) == clusters })
}

// change patches a proxy.
func (w *world) change(p *addonsv1.HelmChartProxy, change func(*addonsv1.HelmChartProxySpec)) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		w.Fatal(err)
	}
	before := p.DeepCopy()
	change(&p.Spec)
	if err := w.Patch(w.Context(), p, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// proxy is a HelmChartProxy for all clusters.
func (w *world) proxy(name, url string, change ...func(*addonsv1.HelmChartProxySpec)) *addonsv1.HelmChartProxy {
	p := &addonsv1.HelmChartProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: addonsv1.HelmChartProxySpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"all": "yes"}},
			ChartName:       "greeter", RepoURL: url, Version: "1.0.0", ReleaseName: name, ReleaseNamespace: w.target,
		},
	}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// greeter has a ConfigMap with a text from the values.
func greeter(t testing.TB, version string) []byte {
	return artifacttest.Chart(t, "greeter", version, map[string]string{
		"values.yaml": "greeting: hello\nname: nobody\n",
		"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {text: {{ printf "%s, %s" .Values.greeting .Values.name | quote }}, version: {{ .Chart.Version | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData: {password: {{ .Values.password | default "none" | quote }}}
`,
	})
}

// text returns the text in the ConfigMap of a release on each cluster.
func (w *world) text(release string) []string {
	var out []string
	for _, s := range workloads.All() {
		m, err := s.Clientset(w).CoreV1().ConfigMaps(w.target).Get(w.Context(), release, metav1.GetOptions{})
		if err != nil {
			out = append(out, "")
			continue
		}
		out = append(out, m.Data["text"]+" from "+m.Data["version"])
	}
	return out
}

// records returns the revisions that Helm lists on a cluster, with their states.
func (w *world) records(server *kubetest.Server, release string) []string {
	list, err := server.Clientset(w).CoreV1().Secrets(w.target).List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, s := range list.Items {
		if s.Type != "helm.sh/release.v1" {
			w.Errorf("record %q is of type %q", s.Name, s.Type)
		}
		out = append(out, s.Labels["version"]+" "+s.Labels["status"])
	}
	slices.Sort(out)
	return out
}

// secret creates a Secret.
func (w *world) secret(name string, kind corev1.SecretType, data map[string][]byte) {
	w.Helper()
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, Data: data})
}
