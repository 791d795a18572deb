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

// gather is how long events of releases are collected: a change to a large fleet comes back as thousands of them, and each time that they are
// summed up takes a look at all clusters and a write.
const gather = time.Second

// soon is how long that is when releases have gone: somebody may wait for the last one.
const soon = 100 * time.Millisecond

// SetupWithManager makes the controller listen to HelmChartProxies, their releases, the clusters, and whatever templates refer to. It adds
// the indexes of package index.
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
		Watches(&addonsv1.HelmReleaseProxy{}, releaseEvents(), builder.WithPredicates(predicate.Funcs{UpdateFunc: releaseChanged})).
		Watches(&clusterv1.Cluster{}, &clusterEvents{c}).
		Build(c)
	if err != nil {
		return fmt.Errorf("making controller %q: %w", name, err)
	}
	c.watch = &external.ObjectTracker{Controller: built, Cache: mgr.GetCache(), Scheme: scheme, PredicateLogger: &log}
	return nil
}

// userChanged says that somebody else than this controller has changed a HelmChartProxy. Nothing but time has passed if the version is the
// same, and then it is looked at again.
func userChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() || metadataChanged(e.ObjectOld, e.ObjectNew)
}

// releaseChanged says that something has changed that the status of the HelmChartProxy or a rollout depends on.
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

// releaseEvents leads from a release to its owner, soon when one has gone and otherwise after a while.
func releaseEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { toOwner(e.Object, q, gather) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { toOwner(e.ObjectNew, q, gather) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) { toOwner(e.Object, q, soon) },
	}
}

func toOwner(r ctrlclient.Object, q requests, after time.Duration) {
	if ref := metav1.GetControllerOf(r); ref != nil && ref.Kind == plan.ChartKind {
		q.AddAfter(ctrlreconcile.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: r.GetNamespace(), Name: ref.Name}}, after)
	}
}
