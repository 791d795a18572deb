package cluster

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "etcdadmcluster"

// SetupWithManager adds the controller to mgr. It watches EtcdadmClusters, their machines, and the
// Clusters that they belong to.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	log := mgr.GetLogger().WithValues("controller", name)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&etcdv1.EtcdadmCluster{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, c.WatchFilter),
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(reconcile.NewGuard(mgr, "EtcdadmCluster").Options(o)).
		Owns(&infrav1.PacketMachine{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster),
			builder.WithPredicates(predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log))).
		Watches(&infrav1.PacketCluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// ofCluster returns the etcd of a Cluster or PacketCluster.
func (c *Controller) ofCluster(ctx context.Context, o ctrlclient.Object) []ctrlreconcile.Request {
	cluster := o.GetLabels()[clusterv1.ClusterNameLabel]
	if _, ok := o.(*clusterv1.Cluster); ok {
		cluster = o.GetName()
	}
	list := &etcdv1.EtcdadmClusterList{}
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(o.GetNamespace()), ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	if err != nil || cluster == "" {
		return nil
	}
	var out []ctrlreconcile.Request
	for i := range list.Items {
		out = append(out, ctrlreconcile.Request{NamespacedName: ctrlclient.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
