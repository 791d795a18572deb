package chart

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/predicates"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

const name = "helmchartproxy"

// collect is how long events of releases are batched: a change to a large fleet causes thousands of
// them, and each summary reads all clusters and writes the status.
const collect = time.Second

// collectDeletions is shorter, because someone may wait for the last one.
const collectDeletions = 100 * time.Millisecond

// SetupWithManager watches HelmChartProxies, their releases, clusters, and the objects that
// templates refer to. It adds the indexes of package index.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := registerMetrics(); err != nil {
		return fmt.Errorf("registering metrics of controller %q: %w", name, err)
	}
	if err := index.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c.Indexed = true
	if c.Live == nil {
		c.Live = mgr.GetAPIReader()
	}
	log := mgr.GetLogger().WithValues("controller", name)
	scheme := mgr.GetScheme()
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&addonsv1.HelmChartProxy{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, c.WatchFilter), predicate.Funcs{UpdateFunc: userChanged})).
		WithOptions(reconcile.NewGuard(mgr, "HelmChartProxy").Options(o)).
		Watches(&addonsv1.HelmReleaseProxy{}, releaseHandler(), builder.WithPredicates(predicate.Funcs{UpdateFunc: releaseChanged})).
		Watches(&clusterv1.Cluster{}, &clusterEvents{c}).
		Build(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	c.watch = &external.ObjectTracker{Controller: built, Cache: mgr.GetCache(), Scheme: scheme, PredicateLogger: &log}
	return nil
}

// userChanged reports whether the change is not this controller's own status. A resync passes too.
func userChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() || metadataChanged(e.ObjectOld, e.ObjectNew)
}

// releaseChanged reports whether the status of the HelmChartProxy or a rollout may change.
func releaseChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*addonsv1.HelmReleaseProxy)
	is, ok2 := e.ObjectNew.(*addonsv1.HelmReleaseProxy)
	if !ok || !ok2 || metadataChanged(was, is) {
		return true
	}
	a, b := conditions.Get(was, clusterv1.ReadyCondition), conditions.Get(is, clusterv1.ReadyCondition)
	if (a == nil) != (b == nil) || (a != nil && *a != *b) {
		return true
	}
	return was.Status.ObservedGeneration != is.Status.ObservedGeneration || failed(was) != failed(is) || !readySince(was).Equal(readySince(is))
}

// releaseHandler maps a release to its owner, after a delay.
func releaseHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { toOwner(e.Object, q, collect) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { toOwner(e.ObjectNew, q, collect) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) { toOwner(e.Object, q, collectDeletions) },
	}
}

func toOwner(r ctrlclient.Object, q requests, after time.Duration) {
	if ref := metav1.GetControllerOf(r); ref != nil && ref.Kind == plan.ChartKind {
		q.AddAfter(ctrlreconcile.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: r.GetNamespace(), Name: ref.Name}}, after)
	}
}
