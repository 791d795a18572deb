package cluster

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/predicates"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "packetcluster"

// SetupWithManager adds the controller to mgr. It watches PacketClusters, and Clusters for changes
// of their pause.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	log := mgr.GetLogger().WithValues("controller", name)
	scheme := mgr.GetScheme()
	kind := infrav1.GroupVersion.WithKind("PacketCluster")
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&infrav1.PacketCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, c.WatchFilter),
			predicates.ResourceIsNotExternallyManaged(scheme, log))).
		WithOptions(reconcile.NewGuard(mgr, "PacketCluster").Options(o)).
		Watches(&clusterv1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(ctx, kind, mgr.GetClient(), &infrav1.PacketCluster{})),
			builder.WithPredicates(predicates.ClusterPausedTransitions(scheme, log))).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}
