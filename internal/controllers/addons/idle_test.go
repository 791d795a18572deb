package addons_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
)

// idle is a world with two clusters behind fronts, and every kind of add-on from a repository and a
// registry.
type idle struct {
	*world

	fronts     []*workloadtest.Front
	plane      *workloadtest.Front
	repository *artifacttest.Repository
	registry   *artifacttest.Registry
	proxies    []*addonsv1.HelmChartProxy
	// seen is the number of known requests of a repository.
	seen map[string]int
}

func newIdle(t *testing.T) *idle {
	t.Helper()
	w := emptyWorld(t)
	i := &idle{world: w, plane: workloadtest.NewFront(t, w.identity), seen: map[string]int{}}
	w.identity = i.plane.Config
	w.flags = []string{"--sync-period=2s"}
	w.start()
	for n, name := range []string{"x", "y"} {
		front := workloadtest.NewFront(t, workloads.All()[n].Config)
		i.fronts = append(i.fronts, front)
		cluster := clusterNamed(w.namespace, name)
		cluster.Labels = map[string]string{"all": "yes", "name": name}
		if err := clustertest.Register(t.Context(), w.Client, cluster, front.Config); err != nil {
			t.Fatal(err)
		}
	}
	i.publish()
	return i
}

func (i *idle) publish() {
	i.Helper()
	locked := artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "secret"}
	i.repository = artifacttest.NewRepository(i, locked)
	i.repository.Publish("greeter", "1.0.0", greeter(i, "1.0.0"))
	i.registry = artifacttest.NewRegistry(i, artifacttest.RegistryOptions{ServerOptions: locked})
	i.registry.Push(i, artifacttest.Package{Name: "greeter", Version: "1.0.0", Archive: greeter(i, "1.0.0")})
	i.registry.Push(i, artifacttest.Package{Name: "plain", Version: "1.0.0", MediaType: artifacttest.FluxContent, Archive: artifacttest.Archive(i, map[string]string{
		"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {text: hello}\n",
	})})
	i.secret("repository", corev1.SecretTypeBasicAuth, map[string][]byte{"username": []byte("drover"), "password": []byte("secret")})
	i.secret("repository-ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": i.repository.Access().CA})
	i.secret("registry", corev1.SecretTypeOpaque, map[string][]byte{"config.json": i.registry.DockerConfig(i)})
	i.secret("registry-ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": i.registry.Access().CA})
	i.secret("values", corev1.SecretTypeOpaque, map[string][]byte{"values.yaml": []byte("name: somebody\n")})
}

// install installs an add-on on both clusters, from the repository or the registry.
func (i *idle) install(name, from string, change func(*spec)) {
	i.Helper()
	url := map[string]string{"repository": i.repository.URL, "registry": i.registry.URL}[from]
	p := i.proxy(name, url, change, func(s *spec) {
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: from}, Key: "config.json"}
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: from + "-ca"}}
	})
	i.create(p)
	i.proxies = append(i.proxies, p)
}

// standaloneRelease is a HelmReleaseProxy without a HelmChartProxy.
func (i *idle) standaloneRelease() {
	i.Helper()
	i.create(&addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{Kind: "Cluster", Namespace: i.namespace, Name: "x"}, ChartName: "greeter", RepoURL: i.repository.URL,
		Version: "1.0.0", ReleaseName: "by-hand", ReleaseNamespace: i.target,
		Credentials: &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "repository"}, Key: "config.json"},
		TLSConfig:   &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "repository-ca"}},
	}})
}

func TestIdleReconcileMakesNoRequests(t *testing.T) {
	i := newIdle(t)
	i.install("plainest", "repository", func(*spec) {})
	i.install("templated", "repository", func(s *spec) { s.ValuesTemplate = "name: {{ .Cluster.metadata.name }}\n" })
	i.install("with-values", "repository", func(s *spec) { s.ValuesFrom = []addonsv1.ValuesSource{{Kind: "Secret", Name: "values"}} })
	i.install("in-waves", "repository", func(s *spec) {
		s.Rollout = &addonsv1.Rollout{Waves: []addonsv1.Wave{{Size: ptr.To(intstr.FromInt32(1))}}}
	})
	i.install("after-another", "repository", func(s *spec) { s.DependsOn = []string{"plainest"} })
	i.install("ranged", "registry", func(s *spec) { s.Version = "^1.0.0" })
	i.install("waited-for", "registry", func(s *spec) { s.Options.Wait = true })
	i.install("watched", "registry", func(s *spec) { s.Drift = &addonsv1.Drift{Mode: addonsv1.DriftCorrect} })
	i.install("manifests", "registry", func(s *spec) { s.Tool, s.ChartName = addonsv1.Manifests, "plain" })
	i.standaloneRelease()
	for _, p := range i.proxies {
		i.awaitReady(p, len(i.fronts))
	}
	i.until("nothing more is done", func() bool {
		i.awaitReconciles(i.reconciled())
		return len(i.takeRequests()) == 0
	})

	before := i.reconciled()
	want := i.touch()
	i.awaitReconciles(before.plus(reconciles{releases: len(i.releases()), charts: len(i.proxies)}))
	if asked := i.takeRequests(); len(asked) > 0 {
		t.Errorf("a pass without any change asked:\n%s", strings.Join(asked, "\n"))
	}
	if diff := cmp.Diff(want, i.versions()); diff != "" {
		t.Errorf("objects were written after they were touched (-touched +now):\n%s", diff)
	}
}

// takeRequests returns the manager's requests to clusters, repository, registry and management
// plane since the last call, except Cluster API's health probes of clusters and restarted watches
// of the management plane.
func (i *idle) takeRequests() []string {
	var out []string
	add := func(where string, requests []string) {
		for _, r := range requests {
			out = append(out, where+": "+r)
		}
	}
	for n, front := range i.fronts {
		add(fmt.Sprintf("cluster %d", n), slices.DeleteFunc(front.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET /?") || r == "GET /" }))
	}
	add("plane", slices.DeleteFunc(i.plane.Requests(), func(r string) bool {
		return strings.Contains(r, "watch=true") || strings.HasSuffix(r, "-kubeconfig")
	}))
	for name, all := range map[string][]string{"repository": i.repository.Requests(), "registry": i.registry.Requests()} {
		add(name, all[i.seen[name]:])
		i.seen[name] = len(all)
	}
	return out
}

// touch changes an annotation of every object to trigger reconciles. It returns the resulting
// versions.
func (i *idle) touch() map[string]string {
	i.Helper()
	versions := map[string]string{}
	for _, o := range i.objects() {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now().String())
		if err := i.Patch(i.Context(), o, client.RawPatch(types.MergePatchType, patch)); err != nil {
			i.Fatal(err)
		}
		versions[nameOf(o)] = o.GetResourceVersion()
	}
	return versions
}

func (i *idle) versions() map[string]string {
	i.Helper()
	versions := map[string]string{}
	for _, o := range i.objects() {
		versions[nameOf(o)] = o.GetResourceVersion()
	}
	return versions
}

func nameOf(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

// objects returns all objects that the add-on controllers may write.
func (i *idle) objects() []client.Object {
	i.Helper()
	charts, releases := &addonsv1.HelmChartProxyList{}, &addonsv1.HelmReleaseProxyList{}
	for _, list := range []client.ObjectList{charts, releases} {
		if err := i.List(i.Context(), list, client.InNamespace(i.namespace)); err != nil {
			i.Fatal(err)
		}
	}
	var out []client.Object
	for n := range charts.Items {
		out = append(out, &charts.Items[n])
	}
	for n := range releases.Items {
		out = append(out, &releases.Items[n])
	}
	return out
}

// reconciles counts reconciles by kind.
type reconciles struct{ charts, releases int }

func (r reconciles) plus(o reconciles) reconciles {
	return reconciles{r.charts + o.charts, r.releases + o.releases}
}

// awaitReconciles waits for at least that many reconciles, then until every HelmChartProxy was
// reconciled once more by its timer, and until all workers are idle.
func (i *idle) awaitReconciles(least reconciles) {
	i.Helper()
	i.until("every object was reconciled", func() bool {
		now := i.reconciled()
		return now.charts >= least.charts+len(i.proxies) && now.releases >= least.releases &&
			i.metric("workqueue_depth") == 0 && i.metric("controller_runtime_active_workers") == 0
	})
}

func (i *idle) reconciled() reconciles {
	i.Helper()
	const total = "controller_runtime_reconcile_total"
	return reconciles{charts: i.metric(total, `"helmchartproxy"`), releases: i.metric(total, `"helmreleaseproxy"`)}
}

// metric returns the sum of a metric of the manager with these labels.
func (i *idle) metric(name string, labels ...string) int {
	i.Helper()
	response, err := http.Get("http://" + i.metrics + "/metrics")
	if err != nil {
		i.Fatal(err)
	}
	defer response.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, name+"{") || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(line, l) }) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			i.Fatal(err)
		}
		sum += value
	}
	return int(sum)
}
