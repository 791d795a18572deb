package about

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Keeper writes the description and restores it when it is changed. Only the leading manager does
// so, so that an older one that is being replaced doesn't revert it.
type Keeper struct {
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	Plane
}

// SetupWithManager adds the controller, with a cache that holds this one object. The options bring
// the manager's queue.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	one, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{key().Namespace: {}},
			Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, Name),
		}},
	})
	if err != nil {
		return fmt.Errorf("watching ConfigMap %q: %w", key(), err)
	}
	if err := mgr.Add(one); err != nil {
		return fmt.Errorf("watching ConfigMap %q: %w", key(), err)
	}
	toUs := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request()} })
	atStart := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request())
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("about").
		WithOptions(o).
		WatchesRawSource(source.Kind(one, client.Object(&corev1.ConfigMap{}), toUs)).
		WatchesRawSource(atStart).
		Complete(k)
}

func request() reconcile.Request { return reconcile.Request{NamespacedName: key()} }

// Reconcile creates or corrects the ConfigMap.
func (k *Keeper) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	wanted, there := k.configMap(), &corev1.ConfigMap{}
	err := k.Live.Get(ctx, key(), there)
	switch {
	case err == nil && maps.Equal(there.Data, wanted.Data) && len(there.BinaryData) == 0:
		return ctrl.Result{}, nil
	case err == nil:
		there.Data, there.BinaryData = wanted.Data, nil
		err = k.Client.Update(ctx, there)
	case client.IgnoreNotFound(err) == nil:
		err = k.Client.Create(ctx, wanted)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing ConfigMap %q: %w", key(), err)
	}
	return ctrl.Result{}, nil
}
