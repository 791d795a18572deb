package packages_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
	"github.com/drover-dev/drover/internal/test/packagestest"
)

func TestMain(m *testing.M) { managertest.Main(m, servers.workloads.Stop) }

// servers are a management plane and two workload clusters, shared by all tests. They are API
// servers without controllers.
var servers struct {
	sync.Once
	management *kubetest.Server
	webhook    string
	workloads  kubetest.Servers
	err        error
	number     atomic.Int32
}

func startServers(t *testing.T) {
	servers.webhook = kubetest.FreeAddress(t)
	servers.management = kubetest.Shared(t, install.Options{WebhookURL: "https://" + servers.webhook})
	for _, name := range []string{packagesv1.Namespace, packagesv1.KubeconfigNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := servers.management.Clientset(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			servers.err = err
		}
	}
}

// world is two clusters, a registry, and a manager that trusts one key.
type world struct {
	*testing.T
	client.Client

	registry *artifacttest.Registry
	signer   *packagestest.Signer
	// clusters are the names of the clusters, in the order of the servers.
	clusters []string
	// number distinguishes the bundles of tests.
	number  int
	minor   string
	flags   []string
	manager *kubetest.Process
	program managertest.Program
	health  string
	// through returns a config that connects the manager to an API server through a proxy; may be
	// nil.
	through func(*rest.Config) *rest.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	servers.Do(func() { startServers(t) })
	if servers.management == nil || servers.err != nil {
		t.Fatalf("starting API servers: %v", servers.err)
	}
	servers.workloads.Start(t, 2)
	w := &world{T: t, number: int(servers.number.Add(1)), program: managertest.Command}
	w.registry = artifacttest.NewRegistry(t, artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true}})
	var err error
	w.Client, err = clustertest.NewClient(servers.management.Config)
	w.must(err)
	w.signer = packagestest.NewSigner(t)
	version, err := servers.workloads.All()[0].Clientset(t).Discovery().ServerVersion()
	w.must(err)
	w.minor = version.Major + "-" + strings.TrimSuffix(version.Minor, "+")
	w.flags = w.settings(w.registry.Host, w.registry.CA)
	return w
}

// settings returns flags of the manager that configure a registry and trust the key.
func (w *world) settings(host string, ca []byte) []string {
	w.Helper()
	dir := w.TempDir()
	der, err := x509.MarshalPKIXPublicKey(w.signer.Private.Public())
	w.must(err)
	files := map[string][]byte{"ca.crt": ca, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
	for name, text := range files {
		w.must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return []string{
		"--registry-url=https://" + host, "--registry-ca=" + filepath.Join(dir, "ca.crt"), "--package-key=" + filepath.Join(dir, "key.pem"),
		"--chart-cache=" + filepath.Join(dir, "charts"), "--kube-api-qps=1000", "--kube-api-burst=2000",
	}
}

func (w *world) must(err error) {
	w.Helper()
	packagestest.Must(w, err)
}

// begin starts the manager and registers the clusters.
func (w *world) begin() {
	w.Helper()
	w.start()
	for i, s := range servers.workloads.All() {
		name := fmt.Sprintf("%s%d", []string{"billy", "tlhowe"}[i], w.number)
		w.clusters = append(w.clusters, name)
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.KubeconfigNamespace, Name: name}}
		w.must(clustertest.Register(w.Context(), w.Client, cluster, w.reach(s.Config)))
	}
}

func (w *world) reach(config *rest.Config) *rest.Config {
	if w.through == nil {
		return config
	}
	return w.through(config)
}

// start runs the manager with the permissions of its service account and waits until it is ready.
func (w *world) start() {
	w.Helper()
	w.health = kubetest.FreeAddress(w)
	flags := append([]string{
		"--kubeconfig=" + kubetest.Kubeconfig(w, w.reach(managertest.Identity(w, servers.management))), "--health-addr=" + w.health, "--metrics-addr=0",
		"--webhook-addr=" + servers.webhook, "--install=false", "--v=3", "--log-format=json",
	}, w.flags...)
	w.manager = managertest.Start(w, w.program(w, flags))
	w.until("the manager is ready", func() bool { return managertest.Ready(w.health) })
}

// clean deletes all objects that the manager of the next test would reconcile. The manager must be
// running, because it removes finalizers.
func (w *world) clean() {
	ctx := w.Context()
	for _, kind := range []client.Object{&packagesv1.Package{}, &packagesv1.PackageBundleController{}, &packagesv1.PackageBundle{}} {
		if err := w.DeleteAllOf(ctx, kind, client.InNamespace(packagesv1.Namespace)); err != nil {
			w.Errorf("cleaning up: %v", err)
		}
		w.until("all objects are deleted", func() bool {
			left := &metav1.PartialObjectMetadataList{}
			kinds, _, err := w.Scheme().ObjectKinds(kind)
			w.must(err)
			left.SetGroupVersionKind(kinds[0].GroupVersion().WithKind(kinds[0].Kind + "List"))
			return w.List(ctx, left, client.InNamespace(packagesv1.Namespace)) == nil && len(left.Items) == 0
		})
	}
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	kubetest.Eventually(w, what, is, w.describe)
}

// describe returns the status of all objects.
func (w *world) describe() string {
	var out strings.Builder
	packs, controllers, bundles := &packagesv1.PackageList{}, &packagesv1.PackageBundleControllerList{}, &packagesv1.PackageBundleList{}
	for _, list := range []client.ObjectList{packs, controllers, bundles} {
		if err := w.List(w.Context(), list); err != nil {
			return err.Error()
		}
	}
	for _, p := range packs.Items {
		fmt.Fprintf(&out, "\nPackage %s: %s %q %+v", p.Name, p.Status.State, p.Status.Detail, p.Status.Conditions)
	}
	releases := &addonsv1.HelmReleaseProxyList{}
	if err := w.List(w.Context(), releases); err == nil {
		for _, r := range releases.Items {
			fmt.Fprintf(&out, "\nHelmReleaseProxy %s: generation %d, %+v", r.Name, r.Generation, r.Status)
		}
	}
	for _, c := range controllers.Items {
		fmt.Fprintf(&out, "\nPackageBundleController %s: %s %s %q %+v", c.Name, c.Spec.ActiveBundle, c.Status.State, c.Status.Detail, c.Status.Conditions)
	}
	for _, b := range bundles.Items {
		fmt.Fprintf(&out, "\nPackageBundle %s: %s", b.Name, b.Status.State)
	}
	return out.String()
}

// chart pushes a chart with a ConfigMap and other templates, and returns the digest of its
// manifest.
func (w *world) chart(name, version string, templates ...string) string {
	w.Helper()
	files := map[string]string{
		"values.yaml": "title: hello\ndefaultNamespace: from-chart\n",
		"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {title: {{ .Values.title | quote }}, version: {{ .Chart.Version | quote }}, registry: {{ .Values.sourceRegistry | quote }}}
`,
	}
	for i, template := range templates {
		files[fmt.Sprintf("templates/%d.yaml", i)] = template
	}
	return w.registry.Push(w, artifacttest.Package{Name: name, Version: version, Archive: artifacttest.Chart(w, name, version, files)})
}

// layer returns the digest of the archive of a chart.
func (w *world) layer(name, manifest string) string {
	w.Helper()
	repository := w.registry.Tag(w, name, "any").Repository
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.registry.CA)
	image, err := remote.Image(repository.Digest(manifest), remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}))
	w.must(err)
	layers, err := image.Manifest()
	w.must(err)
	return layers.Layers[0].Digest.String()
}

// bundleName returns the name of a build.
func (w *world) bundleName(build int) string {
	return fmt.Sprintf("v%s-%d", w.minor, w.number*100+build)
}

// bundleRepository is the repository of bundles.
const bundleRepository = "charts/bundles"

// publish signs a bundle and pushes it with its own tag and the latest tag.
func (w *world) publish(build int, packages ...packagesv1.BundlePackage) *packagesv1.PackageBundle {
	w.Helper()
	b := w.signer.Sign(w, packagestest.Bundle(w.bundleName(build), packages...))
	text, err := bundle.Format(b)
	w.must(err)
	for _, tag := range []string{b.Name, "v" + w.minor + "-latest"} {
		w.registry.Push(w, artifacttest.Package{Name: "bundles", Version: tag, Archive: text, MediaType: "application/vnd.oci.image.layer.v1.tar"})
	}
	return b
}

func pack(name, version, digest string, dependencies ...string) packagesv1.BundlePackage {
	p := packagestest.Package(name, version, digest, dependencies...)
	p.Source.Repository = "charts/" + name
	return p
}

// use creates the PackageBundleController of a cluster.
func (w *world) use(cluster int, active string) {
	w.Helper()
	w.must(w.Create(w.Context(), &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[cluster]},
		Spec: packagesv1.PackageBundleControllerSpec{
			ActiveBundle: active, CreateNamespace: true, BundleRepository: bundleRepository, DefaultImageRegistry: "images.example.com",
		},
	}))
}

func (w *world) activate(cluster int, active string) {
	w.Helper()
	c := &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[cluster]}}
	w.must(w.Patch(w.Context(), c, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"activeBundle":%q}}`, active))))
}

// install creates a Package for a cluster in the shared namespace.
func (w *world) install(cluster int, release, name string) *packagesv1.Package {
	w.Helper()
	p := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[cluster] + "-" + release},
		Spec:       packagesv1.PackageSpec{PackageName: name},
	}
	w.must(w.Create(w.Context(), p))
	return p
}

// awaitInstalled waits until a version of a Package is installed and ready.
func (w *world) awaitInstalled(p *packagesv1.Package, version string) {
	w.Helper()
	w.until(p.Name+" is installed in version "+version, func() bool { return w.isInstalled(p, version) })
}

func (w *world) gone(o client.Object) {
	w.Helper()
	w.until(o.GetName()+" is gone", func() bool { return apierrors.IsNotFound(w.Get(w.Context(), client.ObjectKeyFromObject(o), o)) })
}

// text returns the content of the ConfigMap of a release, empty if it does not exist.
func (w *world) text(cluster int, release string) string {
	m, err := servers.workloads.All()[cluster].Clientset(w).CoreV1().ConfigMaps("from-chart").Get(w.Context(), release, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return m.Data["title"] + " " + m.Data["version"] + " " + m.Data["registry"]
}

// records returns the revisions of a release and their states.
func (w *world) records(cluster int, release string) []string {
	w.Helper()
	secrets := servers.workloads.All()[cluster].Clientset(w).CoreV1().Secrets("from-chart")
	list, err := secrets.List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	w.must(err)
	var out []string
	for _, s := range list.Items {
		out = append(out, s.Labels["version"]+" "+s.Labels["status"])
	}
	slices.Sort(out)
	return out
}

// reached reports whether Helm has started a revision of a release.
func (w *world) reached(cluster int, release, revision string) bool {
	w.Helper()
	return slices.ContainsFunc(w.records(cluster, release), func(r string) bool { return strings.HasPrefix(r, revision+" ") })
}
