package manifests

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/addons/release"
	turns "github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// here uses the test's own server for every cluster.
type here struct{ config *rest.Config }

func (h here) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return h.config, nil
}

func (h here) GetClusterSource(string, func(context.Context, client.Object) []ctrlreconcile.Request, ...clustercache.GetClusterSourceOption) source.Source {
	return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]) error { return nil })
}

// orchestrate runs the release controller with this tool and a package store.
func orchestrate(t *testing.T, server *kubetest.Server, namespace string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), infrav1.AddToScheme(scheme), addonsv1.AddToScheme(scheme)))
	mgr, err := reconcile.NewManager(server.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	must(t, err)
	packages, err := artifact.Open(artifact.Options{Dir: t.TempDir(), PlainHTTP: true})
	must(t, err)
	c := &release.Controller{
		Client: mgr.GetClient(), Values: sources.New(mgr.GetCache(), mgr.GetAPIReader()), Packages: packages,
		Tools:  map[addonsv1.Tool]tool.Tool{addonsv1.Manifests: New(packages)},
		Limits: turns.Limits{Total: 4, PerCluster: 4}, Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // as in the manager
		Clock: clock.RealClock{}, ResolveEvery: time.Hour,
	}
	c.Clusters = workload.New(here{server.Config}, workload.Options{Notify: c.HandleEvent})
	ctx, stop := context.WithCancel(context.Background())
	must(t, c.SetupWithManager(ctx, mgr, release.Connections{Clusters: here{}, Metadata: mgr.GetCache()}, controller.Options{SkipNameValidation: ptr.To(true)}))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
		c.Clusters.Close()
		packages.Close()
	})
	direct, err := client.NewWithWatch(server.Config, client.Options{Scheme: scheme})
	must(t, err)
	return direct
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The release controller knows only the interface of this tool, and treats it like charts.
func TestManifestReleaseLifecycle(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	namespace, kube := server.Namespace(t), server.Clientset(t)
	c := orchestrate(t, server, namespace)
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	push := func(version, greeting string) {
		registry.Push(t, artifacttest.Package{Name: "web", Version: version, MediaType: artifacttest.FluxContent, Archive: artifacttest.Archive(t, map[string]string{
			"kustomization.yaml": "resources: [config.yaml]\n", "config.yaml": strings.ReplaceAll(config, "hello", "'"+greeting+"'"),
		})})
	}
	push("1.0.0", "hello ${WHOM}")
	push("1.1.0", "hi ${WHOM}")
	must(t, clustertest.Register(t.Context(), c, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}, server.Config))
	r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	r.Spec = addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{Kind: "Cluster", Namespace: namespace, Name: "one"}, Tool: addonsv1.Manifests, ChartName: "web", RepoURL: registry.URL,
		ReleaseName: "web", ReleaseNamespace: namespace, Version: "1.0.0", Values: "substitute: {WHOM: world}", Drift: &addonsv1.Drift{Mode: addonsv1.DriftCorrect},
	}
	must(t, c.Create(t.Context(), r))

	await := func(what string, is func() bool) {
		t.Helper()
		tick, late := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
		defer tick.Stop()
		for !is() {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("not seen: %s; the release is %+v", what, r.Status)
			}
		}
	}
	greets := func(greeting string) func() bool {
		return func() bool {
			live, err := kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), "web", metav1.GetOptions{})
			check(t, err)
			check(t, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
			return live != nil && live.Data["greeting"] == greeting && r.Status.ObservedGeneration == r.Generation &&
				conditions.IsTrue(r, clusterv1.ReadyCondition) && conditions.IsTrue(r, addonsv1.ReleaseInSync)
		}
	}
	await("the first version", greets("hello world"))
	_, err := kube.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"data":{"greeting":"mine"}}`), metav1.PatchOptions{})
	must(t, err)
	await("that drift is corrected", greets("hello world"))
	before := r.DeepCopy()
	r.Spec.Version = "1.1.0"
	must(t, c.Patch(t.Context(), r, client.MergeFrom(before)))
	await("the second version", greets("hi world"))
	if r.Status.Revision != 2 || r.Status.Applied.Version != "1.1.0" {
		t.Errorf("status %+v, want revision 2 of version 1.1.0", r.Status)
	}
	must(t, c.Delete(t.Context(), r))
	await("the end", func() bool { return c.Get(t.Context(), client.ObjectKeyFromObject(r), r) != nil })
	left, err := kube.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("left behind: %v (error %v)", left.Items, err)
	}
}
