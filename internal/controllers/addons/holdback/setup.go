package holdback

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

const name = "addonsholdback"

// SetupWithManager watches Machines, the deletion of Clusters, and releases. Package chart has
// already added the indexes to the manager's cache.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	c.Indexed = true
	log := mgr.GetLogger().WithValues("controller", name)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&clusterv1.Machine{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, c.WatchFilter), predicate.Funcs{UpdateFunc: machineChanged})).
		WithOptions(reconcile.NewGuard(mgr, "MachineHoldback").Options(o)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, // its Machines cause events themselves
			UpdateFunc: deletionStarted,
		})).
		Watches(&addonsv1.HelmReleaseProxy{}, handler.EnqueueRequestsFromMapFunc(c.ofRelease), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: releaseChanged,
		})).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// deletionStarted reports that a deletion has started.
func deletionStarted(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
}

func machineChanged(e event.UpdateEvent) bool {
	_, was := e.ObjectOld.GetAnnotations()[Hook]
	_, is := e.ObjectNew.GetAnnotations()[Hook]
	return was != is || deletionStarted(e)
}

func releaseChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*addonsv1.HelmReleaseProxy)
	is, ok2 := e.ObjectNew.(*addonsv1.HelmReleaseProxy)
	return ok && ok2 && uninstallsFirst(was) != uninstallsFirst(is)
}

func (c *Controller) ofRelease(ctx context.Context, o ctrlclient.Object) []ctrlreconcile.Request {
	r, ok := o.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return nil
	}
	return c.machines(ctx, index.ClusterKey(r))
}

func (c *Controller) ofCluster(ctx context.Context, o ctrlclient.Object) []ctrlreconcile.Request {
	return c.machines(ctx, ctrlclient.ObjectKeyFromObject(o))
}

// machines lists the Machines of a cluster.
func (c *Controller) machines(ctx context.Context, cluster ctrlclient.ObjectKey) []ctrlreconcile.Request {
	list := &clusterv1.MachineList{}
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(cluster.Namespace),
		ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}, ctrlclient.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list machines", "cluster", cluster)
		return nil
	}
	var out []ctrlreconcile.Request
	for i := range list.Items {
		out = append(out, ctrlreconcile.Request{NamespacedName: ctrlclient.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
