package install

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/lagtest"
	"github.com/drover-dev/drover/internal/test/packagestest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// plane is an API server with the controller. All tests share it, because the namespace of bundles
// is fixed.
var plane struct {
	sync.Once
	client client.Client
	// cached reads what the controller sees.
	cached client.Reader
	signer *packagestest.Signer
	charts *charts
	// watches are those of the objects that the controller writes, and writes what it wrote.
	watches *lagtest.Watches
	writes  *writes
	number  atomic.Int32
}

func startPlane(t *testing.T) {
	plane.signer = packagestest.NewSigner(t)
	plane.watches, plane.writes = &lagtest.Watches{Resources: []string{"packages", "helmreleaseproxies"}}, &writes{}
	p := packagestest.NewPlane(t, packagestest.Options{
		Wrap:       []func(http.RoundTripper) http.RoundTripper{plane.watches.Wrap, plane.writes.record},
		Namespaces: []string{packagesv1.KubeconfigNamespace},
	})
	mgr := p.Manager
	plane.charts = &charts{archive: artifacttest.Chart(t, "hello", "1.0.0", map[string]string{"values.yaml": "defaultNamespace: from-chart\n"})}
	c := &Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Values: sources.New(mgr.GetCache(), mgr.GetAPIReader()), Charts: plane.charts,
		Places: places{}, Registry: "images.example.com", Keys: plane.signer.Keys, Version: "v1.0.0", Clock: clock.RealClock{},
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // as the manager does
	}
	ctx := context.Background() // until the process ends
	must(t, c.SetupWithManager(ctx, mgr, mgr.GetCache(), controller.Options{MaxConcurrentReconciles: 4}))
	p.Run(ctx, t)
	plane.client, plane.cached = p.Direct, mgr.GetCache()
}

func must(t testing.TB, err error) {
	t.Helper()
	packagestest.Must(t, err)
}

// places locates all charts in one registry.
type places struct{}

func (places) ChartPlace(registry, repository string) (string, string) {
	if registry == "" {
		registry = "charts.example.com"
	}
	return "oci://" + registry, repository
}

func (places) Host(registry string) (string, string) {
	switch registry {
	case "":
		return "charts.example.com", ""
	case "far.example.com":
		return registry, "mirror.example.com"
	default:
		return registry, ""
	}
}

// charts is a registry with one chart.
type charts struct {
	archive []byte
	asked   atomic.Int32
}

func (c *charts) Resolve(_ context.Context, ref artifact.Ref) (artifact.Resolved, error) {
	c.asked.Add(1)
	if strings.HasSuffix(ref.Name, "missing") {
		return artifact.Resolved{}, artifact.ErrNotFound
	}
	return artifact.Resolved{Version: ref.Version, Digest: ref.Version}, nil
}

func (c *charts) Fetch(context.Context, artifact.Ref, artifact.Resolved) ([]byte, error) {
	return c.archive, nil
}

// world is a cluster and bundles with names that no other test uses.
type world struct {
	*testing.T
	client.Client

	cluster, namespace string
	minor              int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	plane.Do(func() { startPlane(t) })
	if plane.client == nil {
		t.Fatal("the plane did not start")
	}
	number := int(plane.number.Add(1))
	w := &world{T: t, Client: plane.client, cluster: fmt.Sprintf("billy%d", number), minor: number}
	w.namespace = packagesv1.NamespacePrefix + w.cluster
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(w.clusterIn(packagesv1.KubeconfigNamespace))
	return w
}

func (w *world) clusterIn(namespace string) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.cluster},
		Spec:       clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{ServiceDomain: "cluster.local"}},
	}
}

func (w *world) create(o client.Object) {
	w.Helper()
	must(w.T, w.Create(w.Context(), o))
}

// bundleName returns the name of a build.
func (w *world) bundleName(build int) string { return fmt.Sprintf("v1-%d-%d", w.minor, build) }

// bundle creates a signed bundle.
func (w *world) bundle(build int, packages ...packagesv1.BundlePackage) *packagesv1.PackageBundle {
	w.Helper()
	b := plane.signer.Sign(w, w.unsigned(build, packages...))
	w.create(b)
	return b
}

func (w *world) unsigned(build int, packages ...packagesv1.BundlePackage) *packagesv1.PackageBundle {
	return packagestest.Bundle(w.bundleName(build), packages...)
}

// pack returns a package of a bundle with one version.
func pack(name, version string, dependencies ...string) packagesv1.BundlePackage {
	return packagestest.Package(name, version, digest(name+version), dependencies...)
}

func digest(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

// controller creates a PackageBundleController with an active bundle.
func (w *world) controller(active string) *packagesv1.PackageBundleController {
	w.Helper()
	c := &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.cluster},
		Spec:       packagesv1.PackageBundleControllerSpec{ActiveBundle: active},
	}
	w.create(c)
	return c
}

func (w *world) activate(name string) {
	w.Helper()
	c := &packagesv1.PackageBundleController{}
	must(w.T, w.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: w.cluster}, c))
	before := c.DeepCopy()
	c.Spec.ActiveBundle = name
	must(w.T, w.Patch(w.Context(), c, client.MergeFrom(before)))
}

// install creates a Package in the namespace of the cluster.
func (w *world) install(name string, spec packagesv1.PackageSpec) *packagesv1.Package {
	w.Helper()
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec}
	w.create(p)
	return p
}

// until waits for a state of a Package and returns it.
func (w *world) until(p *packagesv1.Package, what string, is func(*packagesv1.Package) bool) *packagesv1.Package {
	w.Helper()
	now := &packagesv1.Package{}
	kubetest.Eventually(w, what, func() bool {
		err := w.Get(w.Context(), client.ObjectKeyFromObject(p), now)
		return err == nil && is(now)
	}, func() string { return fmt.Sprintf("%+v", now.Status) })
	lint(w.T, now)
	return now
}

func (w *world) state(p *packagesv1.Package, state packagesv1.StateEnum) *packagesv1.Package {
	w.Helper()
	return w.until(p, p.Name+" is "+string(state), func(now *packagesv1.Package) bool { return now.Status.State == state })
}

// release waits until the HelmReleaseProxy of a Package has a version.
func (w *world) release(p *packagesv1.Package, digest string) *addonsv1.HelmReleaseProxy {
	w.Helper()
	r := &addonsv1.HelmReleaseProxy{}
	kubetest.Eventually(w, "the release of "+p.Name+" has the version", func() bool {
		return w.Get(w.Context(), client.ObjectKeyFromObject(p), r) == nil && r.Spec.Version == digest
	}, func() string {
		now := &packagesv1.Package{}
		_ = w.Get(w.Context(), client.ObjectKeyFromObject(p), now)
		return fmt.Sprintf("%+v %+v", r.Spec, now.Status)
	})
	return r
}

// becomes acts as the release controller and sets the conditions of a release. An empty message
// means that it is ready.
func (w *world) becomes(p *packagesv1.Package, name, reason, message string) {
	w.Helper()
	r := &addonsv1.HelmReleaseProxy{}
	must(w.T, w.Get(w.Context(), client.ObjectKeyFromObject(p), r))
	r.Status.ObservedGeneration = r.Generation
	for _, kind := range []string{addonsv1.ClusterAvailable, addonsv1.ReleaseReady, clusterv1.ReadyCondition} {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Ready"}
		if message != "" && (kind == name || kind == clusterv1.ReadyCondition) {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, message
		}
		conditions.Set(r, c)
	}
	must(w.T, w.Status().Update(w.Context(), r))
}

func (w *world) ready(p *packagesv1.Package) { w.Helper(); w.becomes(p, "", "", "") }

// uninstalled acts as the release controller after it uninstalled a release.
func (w *world) uninstalled(p *packagesv1.Package) {
	w.Helper()
	r := &addonsv1.HelmReleaseProxy{}
	kubetest.Eventually(w, "the release of "+p.Name+" is deleted", func() bool {
		return w.Get(w.Context(), client.ObjectKeyFromObject(p), r) == nil && !r.DeletionTimestamp.IsZero()
	}, func() string { return fmt.Sprintf("%+v", r.ObjectMeta) })
	controllerutil.RemoveFinalizer(r, addonsv1.HelmReleaseProxyFinalizer)
	must(w.T, w.Update(w.Context(), r))
}

func (w *world) gone(o client.Object) {
	w.Helper()
	kubetest.Eventually(w, o.GetName()+" is gone", func() bool {
		return apierrors.IsNotFound(w.Get(w.Context(), client.ObjectKeyFromObject(o), o))
	}, func() string { return fmt.Sprintf("%+v", o) })
}

// lint checks rules that hold for every status.
func lint(t *testing.T, p *packagesv1.Package) {
	t.Helper()
	packagestest.LintConditions(t, p.Status.Conditions)
	if p.Status.State != "" && meta.FindStatusCondition(p.Status.Conditions, packagesv1.Ready) == nil {
		t.Errorf("%s has no condition Ready", p.Name)
	}
}

func reason(p *packagesv1.Package, name string) string {
	c := meta.FindStatusCondition(p.Status.Conditions, name)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}
