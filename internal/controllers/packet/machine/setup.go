package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/predicates"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "packetmachine"

// SetupWithManager adds the controller to mgr. It watches machines, what they depend on, and the
// nodes of their clusters.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, clusters clustercache.ClusterCache, o controller.Options) error {
	log := mgr.GetLogger().WithValues("controller", name)
	ofCluster, err := util.ClusterToTypedObjectsMapper(mgr.GetClient(), &infrav1.PacketMachineList{}, mgr.GetScheme())
	if err != nil {
		return err
	}
	c.Workloads = clusters
	c.nodes.controller, err = ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&infrav1.PacketMachine{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, c.WatchFilter))).
		WithOptions(reconcile.NewGuard(mgr, "PacketMachine").Options(o)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(
			util.MachineToInfrastructureMapFunc(infrav1.GroupVersion.WithKind("PacketMachine")))).
		Watches(&etcdbootstrapv1.EtcdadmConfig{}, &handler.EnqueueRequestForObject{}).
		Watches(&infrav1.PacketCluster{}, handler.EnqueueRequestsFromMapFunc(c.ofPacketCluster),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster),
			builder.WithPredicates(predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log))).
		WatchesRawSource(clusters.GetClusterSource(name, ofCluster)).
		Build(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// ofPacketCluster returns the machines of a cluster.
func (c *Controller) ofPacketCluster(ctx context.Context, obj ctrlclient.Object) []ctrlreconcile.Request {
	cluster := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" {
		return nil
	}
	machines, err := c.machines(ctx, ctrlclient.ObjectKey{Namespace: obj.GetNamespace(), Name: cluster})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the machines of a cluster failed", "cluster", cluster)
		return nil
	}
	var requests []ctrlreconcile.Request
	for i := range machines {
		requests = append(requests, ctrlreconcile.Request{NamespacedName: ctrlclient.ObjectKeyFromObject(&machines[i])})
	}
	return requests
}

func (c *Controller) machines(ctx context.Context, cluster ctrlclient.ObjectKey) ([]infrav1.PacketMachine, error) {
	list := &infrav1.PacketMachineList{}
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(cluster.Namespace), ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
	return list.Items, err
}

// nodeWatcher watches the nodes of workload clusters. It has no controller in tests that call
// Reconcile.
type nodeWatcher struct{ controller controller.Controller }

// watch may be called again: the connection remembers its watches.
func (w *nodeWatcher) watch(ctx context.Context, c *Controller, cluster ctrlclient.ObjectKey) error {
	if w.controller == nil {
		return nil
	}
	return c.Workloads.Watch(ctx, cluster, clustercache.NewWatcher(clustercache.WatcherOptions{
		Name:    "packetmachine-nodes",
		Watcher: w.controller,
		Kind:    &corev1.Node{},
		EventHandler: handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj ctrlclient.Object) []ctrlreconcile.Request {
			return c.ofNode(ctx, cluster, obj)
		}),
		Predicates: []predicate.TypedPredicate[ctrlclient.Object]{predicate.NewPredicateFuncs(func(obj ctrlclient.Object) bool {
			node, ok := obj.(*corev1.Node)
			return ok && pending(node)
		})},
	}))
}

// ofNode returns the machine of a node.
func (c *Controller) ofNode(ctx context.Context, cluster ctrlclient.ObjectKey, obj ctrlclient.Object) []ctrlreconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil
	}
	machines, err := c.machines(ctx, cluster)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the machines of a cluster failed", "cluster", cluster)
		return nil
	}
	var requests []ctrlreconcile.Request
	for i := range machines {
		if matches(node, &machines[i]) {
			requests = append(requests, ctrlreconcile.Request{NamespacedName: ctrlclient.ObjectKeyFromObject(&machines[i])})
		}
	}
	return requests
}
