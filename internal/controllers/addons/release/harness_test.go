package release_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/addons/release"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a controller on a real API server, with an in-memory tool.
type world struct {
	*testing.T

	client    client.Client
	tool      *fakeTool
	namespace string
	// other is the namespace of another tenant.
	other    string
	clusters *configs
	reviews  *reviews
}

// reviews counts the reviews of the permissions of deployer. Those of denied accounts are repeated.
type reviews struct {
	client.Client
	asked atomic.Int32
}

func (r *reviews) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if review, ok := o.(*authorizationv1.SubjectAccessReview); ok && strings.HasSuffix(review.Spec.User, ":deployer") {
		r.asked.Add(1)
	}
	return r.Client.Create(ctx, o, options...)
}

// configs returns the test's server, except for clusters whose names mark them as silent.
type configs struct{ config *rest.Config }

func (c *configs) GetRESTConfig(_ context.Context, key client.ObjectKey) (*rest.Config, error) {
	if key.Name == "lost" {
		return nil, clustercache.ErrClusterNotConnected
	}
	return c.config, nil
}

func (c *configs) GetClusterSource(string, func(context.Context, client.Object) []ctrlreconcile.Request, ...clustercache.GetClusterSourceOption) source.Source {
	return source.Func(func(context.Context, queue) error { return nil })
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, packagesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, tool: newFakeTool(), namespace: server.Namespace(t), other: server.Namespace(t), clusters: &configs{server.Config}}
	mgr, err := reconcile.NewManager(server.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: inNamespaces(w.namespace, w.other, packagesv1.Namespace),
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.client = mgr.GetClient()
	w.reviews = &reviews{Client: mgr.GetClient()}
	c := &release.Controller{
		Client: mgr.GetClient(), Values: sources.New(mgr.GetCache(), mgr.GetAPIReader()), Packages: fakePackages{},
		Policy: delegation.New(delegation.Options{Reviews: w.reviews, Clock: clock.RealClock{}}),
		Tools:  map[addonsv1.Tool]tool.Tool{addonsv1.Helm: w.tool},
		Limits: operation.Limits{Total: 8, PerCluster: 4}, Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // as in the manager
		Clock: clock.RealClock{}, ResolveEvery: time.Hour,
	}
	c.Clusters = workload.New(w.clusters, workload.Options{Notify: c.HandleEvent})
	w.tool.tell = c.HandleEvent
	ctx, stop := context.WithCancel(context.Background())
	err = c.SetupWithManager(ctx, mgr, release.Connections{Clusters: w.clusters, Metadata: mgr.GetCache()},
		controller.Options{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 4})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
		c.Clusters.Close()
		if w.tool.clashes > 0 {
			t.Errorf("%d times two things were done to one release at once", w.tool.clashes)
		}
	})
	return w
}

// cluster creates a Cluster with an available control plane.
func (w *world) cluster(name string) *clusterv1.Cluster {
	w.Helper()
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PacketCluster", Name: name},
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443},
		},
	}
	w.create(c)
	before := c.DeepCopy()
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	if err := w.client.Status().Patch(w.Context(), c, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
	return c
}

// release creates a HelmReleaseProxy for a chart of the same name.
func (w *world) release(name, cluster string, change ...func(*addonsv1.HelmReleaseProxySpec)) *addonsv1.HelmReleaseProxy {
	w.Helper()
	r := &addonsv1.HelmReleaseProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-" + cluster, Labels: map[string]string{addonsv1.HelmChartProxyLabel: name}},
		Spec: addonsv1.HelmReleaseProxySpec{
			ClusterRef: corev1.ObjectReference{Kind: "Cluster", Name: cluster, Namespace: w.namespace},
			ChartName:  name, RepoURL: "https://charts.test", ReleaseName: name, ReleaseNamespace: "addons", Version: "1.0.0",
		},
	}
	for _, c := range change {
		c(&r.Spec)
	}
	w.create(r)
	return r
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

// change patches a release.
func (w *world) change(r *addonsv1.HelmReleaseProxy, change func(*addonsv1.HelmReleaseProxy)) {
	w.Helper()
	current := w.get(r)
	before := current.DeepCopy()
	change(current)
	if err := w.client.Patch(w.Context(), current, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// get reads a release from the server; nil if it is deleted.
func (w *world) get(r *addonsv1.HelmReleaseProxy) *addonsv1.HelmReleaseProxy {
	w.Helper()
	out := &addonsv1.HelmReleaseProxy{}
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(r), out); err != nil {
		if client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
		return nil
	}
	return out
}

// await waits until a release matches.
func (w *world) await(r *addonsv1.HelmReleaseProxy, what string, is func(*addonsv1.HelmReleaseProxy) bool) *addonsv1.HelmReleaseProxy {
	w.Helper()
	var got *addonsv1.HelmReleaseProxy
	w.until(what, func() bool {
		got = w.get(r)
		return is(got)
	}, func() any { return got })
	return got
}

func (w *world) until(what string, is func() bool, got func() any) {
	w.Helper()
	kubetest.Eventually(w, what, is, func() string { return fmt.Sprintf("%+v", got()) })
}

func condition(r *addonsv1.HelmReleaseProxy, name string) metav1.Condition {
	if r == nil {
		return metav1.Condition{}
	}
	for _, c := range r.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{}
}

func isReady(r *addonsv1.HelmReleaseProxy) bool {
	return r != nil && r.Status.ObservedGeneration == r.Generation && condition(r, clusterv1.ReadyCondition).Status == metav1.ConditionTrue
}

// reason matches a condition with this reason.
func reason(name, reason string) func(*addonsv1.HelmReleaseProxy) bool {
	return func(r *addonsv1.HelmReleaseProxy) bool { return condition(r, name).Reason == reason }
}

type queue = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

func inNamespaces(names ...string) cache.Options {
	o := cache.Options{DefaultNamespaces: map[string]cache.Config{}}
	for _, name := range names {
		o.DefaultNamespaces[name] = cache.Config{}
	}
	return o
}

// countStatusWrites watches releases, and returns a function that counts the writes of their
// status.
func (w *world) countStatusWrites() func(*addonsv1.HelmReleaseProxy) int {
	w.Helper()
	watcher, err := client.NewWithWatch(w.clusters.config, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	events, err := watcher.Watch(w.Context(), &addonsv1.HelmReleaseProxyList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	return func(of *addonsv1.HelmReleaseProxy) int {
		w.Helper()
		last, writes := addonsv1.HelmReleaseProxyStatus{}, 0
		for e := range events.ResultChan() {
			r, ok := e.Object.(*addonsv1.HelmReleaseProxy)
			if !ok {
				w.Fatalf("the watch ended: %v", e.Object)
			}
			if r.Name != of.Name {
				break
			}
			if !reflect.DeepEqual(last, r.Status) {
				last = r.Status
				writes++
			}
		}
		return writes
	}
}
