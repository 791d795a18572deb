package install

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/target"
)

const name = "package"

// Names of indexes: Packages by possible clusters, PackageBundleControllers by their active and
// latest bundles, and Clusters by name.
const (
	packagesByCluster   = "packages.install.cluster"
	controllersByBundle = "packages.install.bundle"
	clustersByName      = "packages.install.name"
)

// SetupWithManager adds the controller, its indexes and its watches. Of Secrets and namespaces,
// only the metadata is watched.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, metadata cache.Cache, o controller.Options) error {
	c.metadata = metadata
	if err := c.registerMetrics(); err != nil {
		return fmt.Errorf("registering metrics of controller %q: %w", name, err)
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	guard := reconcile.NewGuard(mgr, "Package")
	queue := &atomic.Pointer[requests]{}
	c.start(ctx, queue)
	filter := predicates.ResourceHasFilterLabel(mgr.GetScheme(), mgr.GetLogger(), c.WatchFilter)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&packagesv1.Package{}, builder.WithPredicates(filter, predicate.Funcs{UpdateFunc: userChanged})).
		Owns(&addonsv1.HelmReleaseProxy{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: releaseChanged}, byOthers(guard.Wrote))).
		Watches(&packagesv1.Package{}, handler.EnqueueRequestsFromMapFunc(c.usersOf), builder.WithPredicates(filter, predicate.Funcs{UpdateFunc: stateChanged})).
		Watches(&packagesv1.PackageBundleController{}, handler.EnqueueRequestsFromMapFunc(c.ofController), builder.WithPredicates(predicate.Funcs{UpdateFunc: controllerChanged})).
		Watches(&packagesv1.PackageBundle{}, handler.EnqueueRequestsFromMapFunc(c.ofBundle), builder.WithPredicates(predicate.Funcs{UpdateFunc: bundleChanged})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(predicate.Funcs{UpdateFunc: marksChanged})).
		WatchesRawSource(source.Kind(metadata, metaOf("Secret"), handler.EnqueueRequestsFromMapFunc(c.ofMirror))).
		WatchesRawSource(source.Kind(metadata, metaOf("Namespace"), handler.EnqueueRequestsFromMapFunc(c.ofNamespace), predicate.Funcs{UpdateFunc: marksChanged})).
		WatchesRawSource(source.Func(func(_ context.Context, q requests) error {
			queue.Store(&q)
			return nil
		})).
		WithOptions(guard.Options(o)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// metaOf returns an empty PartialObjectMetadata of a core kind.
func metaOf(kind string) client.Object {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return meta
}

// requests is the queue of the controller's workers.
type requests = workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]

// start prepares the downloads that run beside the workers. They end with ctx.
func (c *Controller) start(ctx context.Context, queue *atomic.Pointer[requests]) {
	c.namespaces = &namespaces{charts: c.Charts, clock: c.Clock, stop: ctx, wake: func(key client.ObjectKey) {
		if q := queue.Load(); q != nil {
			(*q).Add(ctrlreconcile.Request{NamespacedName: key})
		}
	}}
}

func addIndexes(ctx context.Context, fields client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		name   string
		keys   client.IndexerFunc
	}{
		{&packagesv1.Package{}, packagesByCluster, func(o client.Object) []string { return target.Candidates(client.ObjectKeyFromObject(o)) }},
		{&packagesv1.PackageBundleController{}, controllersByBundle, bundleKeys},
		{&clusterv1.Cluster{}, clustersByName, func(o client.Object) []string { return []string{o.GetName()} }},
	} {
		if err := fields.IndexField(ctx, index.object, index.name, index.keys); err != nil {
			return fmt.Errorf("adding index %q: %w", index.name, err)
		}
	}
	return nil
}

func bundleKeys(o client.Object) []string {
	c, ok := o.(*packagesv1.PackageBundleController)
	if !ok || c.Namespace != packagesv1.Namespace {
		return nil
	}
	var out []string
	for _, name := range []string{c.Spec.ActiveBundle, c.Status.LatestBundle} {
		if name != "" && (len(out) == 0 || out[0] != name) {
			out = append(out, name)
		}
	}
	return out
}
