package vip

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

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "packetendpoint"

// SetupWithManager adds the controller to mgr. It watches the address of a cluster and its control
// plane machines. Health has no events, so the controller polls it while there is a choice.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	log := mgr.GetLogger().WithValues("controller", name)
	scheme := mgr.GetScheme()
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&infrav1.PacketCluster{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(scheme, log, c.WatchFilter), addressChanged())).
		WithOptions(reconcile.NewGuard(mgr, "PacketClusterEndpoint").Options(o)).
		Watches(&infrav1.PacketMachine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(stateChanged())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(deletionStarted())).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// ofMachine returns the PacketCluster of a Machine or PacketMachine.
func (c *Controller) ofMachine(ctx context.Context, obj ctrlclient.Object) []ctrlreconcile.Request {
	cluster := &clusterv1.Cluster{}
	key := ctrlclient.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[clusterv1.ClusterNameLabel]}
	if key.Name == "" || c.Client.Get(ctx, key, cluster) != nil {
		return nil
	}
	ref := cluster.Spec.InfrastructureRef
	if ref.Kind != "PacketCluster" {
		return nil
	}
	return []ctrlreconcile.Request{{NamespacedName: ctrlclient.ObjectKey{Namespace: key.Namespace, Name: ref.Name}}}
}

// addressChanged ignores the controller's own writes.
func addressChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*infrav1.PacketCluster)
		is, okToo := e.ObjectNew.(*infrav1.PacketCluster)
		return !ok || !okToo || movable(was) != movable(is) || is.DeletionTimestamp != nil || was.Generation != is.Generation
	}}
}

func stateChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*infrav1.PacketMachine)
		is, okToo := e.ObjectNew.(*infrav1.PacketMachine)
		return !ok || !okToo || deviceOf(was) != deviceOf(is) || was.Status.Ready != is.Status.Ready ||
			(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
	}}
}

func deletionStarted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	}
}
