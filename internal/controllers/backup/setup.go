package backup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// Options configure the controller.
type Options struct {
	// Metadata is a cache with the metadata of Secrets.
	Metadata cache.Cache
	// Registry is the address at which the manager offers charts and bundles.
	Registry string
}

// Setup adds the controller to mgr.
func Setup(mgr ctrl.Manager, o Options) error {
	figures, err := NewFigures(metrics.Registry)
	if err != nil {
		return err
	}
	c := &Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Figures: figures, Registry: o.Registry,
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
	}
	one := ctrlreconcile.Request{NamespacedName: key()}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	isOurs := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrlreconcile.Request {
		if client.ObjectKeyFromObject(o) != key() {
			return nil
		}
		return []ctrlreconcile.Request{one}
	})
	// A management cluster that arrives after the settings, when it was created.
	isManager := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrlreconcile.Request {
		if ours, ok := o.(*anywherev1.Cluster); !ok || !ours.IsSelfManaged() {
			return nil
		}
		return []ctrlreconcile.Request{one}
	})
	atStart := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]) error {
		queue.Add(one)
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("backup").
		WithOptions(reconcile.WithQueue(controller.Options{MaxConcurrentReconciles: 1})).
		WatchesRawSource(source.Kind(o.Metadata, client.Object(secret), isOurs)).
		Watches(&anywherev1.Cluster{}, isManager, onlyNew()).
		WatchesRawSource(atStart).
		Complete(c)
}

// onlyNew ignores changes of Clusters, which have nothing to do with backups.
func onlyNew() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false },
	})
}
