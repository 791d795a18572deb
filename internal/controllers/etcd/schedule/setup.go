package schedule

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/counter"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "etcdsnapshotschedule"

const (
	// atOnce is how many snapshots are saved at once: each is a temporary file of its size.
	atOnce = 2
	// maxEnded bounds the schedules that are woken at the same moment. One that isn't looks again by
	// itself.
	maxEnded = 1024
)

// SetupWithManager adds the controller and its metrics.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := counter.Serve(metrics.Registry, collector{mgr.GetCache()}); err != nil {
		return fmt.Errorf("registering metrics of snapshots: %w", err)
	}
	if err := setupWebhook(mgr); err != nil {
		return err
	}
	c.prepare(ctx)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		c.operations.Wait()
		return nil
	})); err != nil {
		return err
	}
	log := mgr.GetLogger().WithValues("controller", name)
	existence := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&droverv1.EtcdSnapshotSchedule{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, c.WatchFilter), predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(existence)).
		WatchesRawSource(source.Channel(c.ended, &handler.EnqueueRequestForObject{})).
		WithOptions(reconcile.NewGuard(mgr, "EtcdSnapshotSchedule").Options(o)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// prepare prepares what runs outside the workers. It ends with ctx.
func (c *Controller) prepare(ctx context.Context) {
	c.ended = make(chan event.GenericEvent, maxEnded)
	c.operations = operation.New(ctx, operation.Limits{Total: atOnce, PerCluster: 1}, func(key client.ObjectKey) {
		select {
		case c.ended <- event.GenericEvent{Object: &droverv1.EtcdSnapshotSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}:
		default:
		}
	})
}

// ofCluster returns the schedules of a Cluster.
func (c *Controller) ofCluster(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	all := &droverv1.EtcdSnapshotScheduleList{}
	if err := c.Client.List(ctx, all, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	var out []ctrlreconcile.Request
	for i := range all.Items {
		if s := &all.Items[i]; s.Spec.ClusterName == o.GetName() {
			out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return out
}
