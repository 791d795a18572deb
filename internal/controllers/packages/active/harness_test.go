package active

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/packagestest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
	"github.com/drover-dev/drover/internal/workload"
)

func TestMain(m *testing.M) {
	code := kubetest.Main(m)
	if shared.target != nil {
		shared.target.Stop()
	}
	os.Exit(code)
}

// shared is a management plane with the controller, and a cluster. Namespaces are fixed, so each
// test uses its own names.
var shared struct {
	sync.Once
	*plane

	target *kubetest.Server
	number int
	mu     sync.Mutex
}

type plane struct {
	client  client.Client
	bundles *source.Bundles
	ways    *ways
	events  *packagestest.Events
	signer  *packagestest.Signer
	// requests counts the requests of the controller to the management plane.
	controller *Controller
	requests   *atomic.Int64
}

// number returns a number that no other test has.
func number() int {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.number += 100
	return shared.number
}

// ways are connections to clusters. A change triggers a reconcile.
type ways struct {
	mu    sync.Mutex
	open  map[client.ObjectKey]*rest.Config
	queue queue
}

func (w *ways) GetRESTConfig(_ context.Context, key client.ObjectKey) (*rest.Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if config := w.open[key]; config != nil {
		return config, nil
	}
	return nil, clustercache.ErrClusterNotConnected
}

func (w *ways) GetClusterSource(string, func(context.Context, client.Object) []reconcile.Request, ...clustercache.GetClusterSourceOption) crsource.Source {
	return crsource.Func(func(_ context.Context, q queue) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = q
		for key := range w.open { // of tests that began before the controller
			q.Add(named(key.Name)[0])
		}
		return nil
	})
}

// set connects to a cluster, or disconnects it if config is nil.
func (w *ways) set(key client.ObjectKey, config *rest.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[key] = config
	if w.queue != nil {
		w.queue.Add(named(key.Name)[0])
	}
}

func startShared(t *testing.T) {
	target, err := kubetest.Run(context.Background())
	packagestest.Must(t, err)
	shared.target = target
	p := &plane{
		requests: &atomic.Int64{}, ways: &ways{open: map[client.ObjectKey]*rest.Config{}},
		events: &packagestest.Events{}, signer: packagestest.NewSigner(t),
	}
	management := packagestest.NewPlane(t, packagestest.Options{
		Wrap:       []func(http.RoundTripper) http.RoundTripper{func(next http.RoundTripper) http.RoundTripper { return counting{next, p.requests} }},
		Uncached:   []client.Object{&corev1.Secret{}},
		Namespaces: []string{"fleet"},
	})
	mgr := management.Manager
	p.client = mgr.GetClient()
	p.bundles, err = source.New(source.Options{PlainHTTP: true})
	packagestest.Must(t, err)
	c := &Controller{
		Client: p.client, Secrets: NewSecrets(mgr.GetCache(), mgr.GetAPIReader()), Source: p.bundles, Keys: p.signer.Keys, Version: "v0.5.0",
		Limits: operation.Limits{Total: 8, PerCluster: 4}, DeletionTimeout: 3 * time.Second, Events: p.events, Clock: clock.RealClock{},
	}
	p.controller = c
	c.Clusters = workload.New(p.ways, workload.Options{Notify: c.Notice, RequestTimeout: time.Second})
	ctx := context.Background() // until the process ends
	packagestest.Must(t, c.SetupWithManager(ctx, mgr, Connections{Clusters: p.ways, Metadata: mgr.GetCache()}, controller.Options{
		SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 4,
	}))
	management.Run(ctx, t)
	shared.plane = p
}

type counting struct {
	next  http.RoundTripper
	total *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.total.Add(1)
	return c.next.RoundTrip(r)
}

// world is a registry and a cluster with names that no other test has.
type world struct {
	*testing.T
	*plane

	registry *artifacttest.Registry
	// name is the name of the cluster.
	name   string
	number int
	front  *workloadtest.Front
	target kubernetes.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldAlone(t)
}

// newWorldAlone is for tests that can't run in parallel.
func newWorldAlone(t *testing.T) *world {
	t.Helper()
	shared.Do(func() { startShared(t) })
	if shared.plane == nil {
		t.Fatal("the management plane did not start")
	}
	w := &world{T: t, plane: shared.plane, number: number(), target: shared.target.Clientset(t)}
	w.name = fmt.Sprintf("billy%d", w.number)
	w.registry = artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	w.front = workloadtest.NewFront(t, shared.target.Config)
	t.Cleanup(func() { w.ways.set(w.cluster(), nil) })
	return w
}

func (w *world) cluster() client.ObjectKey { return client.ObjectKey{Namespace: "fleet", Name: w.name} }

// bundle returns the name of the nth bundle of the test.
func (w *world) bundle(n int) string { return fmt.Sprintf("v1-36-%d", w.number+n) }

const latest = "v1-36-latest"

// publish pushes a signed bundle with a version of the package hello.
func (w *world) publish(tag, name, version string, changes ...func(*packagesv1.PackageBundle)) {
	w.Helper()
	w.push("bundles", tag, w.signed(name, version, changes...))
}

// signed returns a signed bundle. Each signature is different.
func (w *world) signed(name, version string, changes ...func(*packagesv1.PackageBundle)) []byte {
	w.Helper()
	b := at(name, version)
	b.Namespace = packagesv1.Namespace
	for _, change := range changes {
		change(b)
	}
	w.signer.Sign(w, b)
	text, err := yaml.Marshal(b)
	w.must(err)
	return text
}

func (w *world) push(repository, tag string, text []byte) {
	w.Helper()
	w.registry.Push(w, artifacttest.Package{Name: repository, Version: tag, Archive: text, MediaType: "application/vnd.oci.image.layer.v1.tar"})
}

func (w *world) must(err error) {
	w.Helper()
	packagestest.Must(w, err)
}

// connect creates the Cluster and connects to it.
func (w *world) connect() {
	w.Helper()
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: w.name},
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PacketCluster", Name: w.name},
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443},
		},
	}
	w.must(w.client.Create(w.Context(), c))
	before := c.DeepCopy()
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.must(w.client.Status().Patch(w.Context(), c, client.MergeFrom(before)))
	w.ways.set(w.cluster(), w.front.Config)
}

// start creates the PackageBundleController.
func (w *world) start(changes ...func(*packagesv1.PackageBundleControllerSpec)) {
	w.Helper()
	o := &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.name},
		Spec:       packagesv1.PackageBundleControllerSpec{Source: &packagesv1.BundleSource{Registry: w.registry.Host, Repository: "charts/bundles"}},
	}
	for _, change := range changes {
		change(&o.Spec)
	}
	w.must(w.client.Create(w.Context(), o))
}

func activeBundle(name string) func(*packagesv1.PackageBundleControllerSpec) {
	return func(s *packagesv1.PackageBundleControllerSpec) { s.ActiveBundle = name }
}

func every(d time.Duration) func(*packagesv1.PackageBundleControllerSpec) {
	return func(s *packagesv1.PackageBundleControllerSpec) {
		s.UpgradeCheckInterval, s.UpgradeCheckShortInterval = metav1.Duration{Duration: d}, metav1.Duration{Duration: d}
	}
}

// get returns the object, nil if it does not exist.
func (w *world) get() *packagesv1.PackageBundleController {
	w.Helper()
	o := &packagesv1.PackageBundleController{}
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: w.name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return o
}

// change patches the object.
func (w *world) change(change func(*packagesv1.PackageBundleController)) {
	w.Helper()
	o := w.get()
	before := o.DeepCopy()
	change(o)
	w.must(w.client.Patch(w.Context(), o, client.MergeFrom(before)))
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	kubetest.Eventually(w, what, is, func() string {
		o := w.get()
		if o == nil {
			o = &packagesv1.PackageBundleController{}
		}
		return fmt.Sprintf("spec %+v\nstatus %+v\nevents %s", o.Spec, o.Status, w.events.Of(w.name))
	})
}

// await waits for a state of the object and checks its conditions.
func (w *world) await(what string, is func(*packagesv1.PackageBundleController) bool) *packagesv1.PackageBundleController {
	w.Helper()
	var o *packagesv1.PackageBundleController
	w.until(what, func() bool {
		o = w.get()
		return o != nil && is(o)
	})
	lint(w.T, o)
	return o
}

func lint(t *testing.T, o *packagesv1.PackageBundleController) {
	t.Helper()
	packagestest.LintConditions(t, o.Status.Conditions)
	for _, c := range o.Status.Conditions {
		if c.Status != metav1.ConditionTrue && c.Message == "" {
			t.Errorf("condition %s is %s without a message", c.Type, c.Status)
		}
	}
	if strings.Contains(o.Status.Detail, packagestest.Canary) {
		t.Error("the detail contains a secret")
	}
}

// active waits until a bundle is active and the object is ready.
func (w *world) active(name string) *packagesv1.PackageBundleController {
	w.Helper()
	return w.await(name+" is active", func(o *packagesv1.PackageBundleController) bool {
		return o.Spec.ActiveBundle == name && o.Status.State == packagesv1.ControllerActive && o.Status.Detail == "" &&
			o.Status.ObservedGeneration == o.Generation && isTrue(o.Status.Conditions, packagesv1.Ready)
	})
}

// has reports whether a condition has a reason and its message contains words.
func has(o *packagesv1.PackageBundleController, kind, reason, words string) bool {
	c := meta.FindStatusCondition(o.Status.Conditions, kind)
	return c != nil && c.Reason == reason && strings.Contains(c.Message, words)
}

// stored returns a bundle, nil if it does not exist.
func (w *world) stored(name string) *packagesv1.PackageBundle {
	w.Helper()
	b := &packagesv1.PackageBundle{}
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return b
}

func clusterOf(w *world) *clusterv1.Cluster {
	w.Helper()
	c := &clusterv1.Cluster{}
	w.until("the cache has the cluster", func() bool { return w.client.Get(w.Context(), w.cluster(), c) == nil })
	return c
}

// pretend puts a proxy in front of the cluster and returns the minor version that it reports.
func (w *world) pretend() *atomic.Value {
	w.Helper()
	minor := &atomic.Value{}
	minor.Store("36")
	w.front.Config = workloadtest.Before(w, w.front.Config, func(olderVersion *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" {
				fmt.Fprintf(out, `{"major": "1", "minor": %q}`, minor.Load())
				return
			}
			olderVersion.ServeHTTP(out, r)
		})
	})
	return minor
}
