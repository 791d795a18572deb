package webhookcert

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/config"
	ours "github.com/drover-dev/drover/internal/controllers/reconcile"
)

// CacheByObject narrows the manager's cache to the two webhook configurations that the manager may
// read.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&admissionv1.MutatingWebhookConfiguration{}:   {Field: named(config.MutatingWebhooks)},
		&admissionv1.ValidatingWebhookConfiguration{}: {Field: named(config.ValidatingWebhooks)},
	}
}

// SetupWithManager keeps the certificates in every replica, leader or not, as every replica serves
// webhooks. Targets are watched by their metadata only: a changed bundle shows as a changed
// generation.
func (c *Certs) SetupWithManager(mgr ctrl.Manager) error {
	secrets, err := c.secretCache(mgr)
	if err != nil {
		return fmt.Errorf("watching secret %q: %w", c.store.key, err)
	}
	everyReplica := false
	toUs := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: c.store.key}}
	})
	secret := source.Kind(secrets, client.Object(&corev1.Secret{}), toUs)
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhookcert").
		WithOptions(ours.WithQueue(controller.Options{NeedLeaderElection: &everyReplica, MaxConcurrentReconciles: 1})).
		WatchesRawSource(secret).
		WatchesMetadata(&apiextensionsv1.CustomResourceDefinition{}, toUs, builder.WithPredicates(c.foreignChange())).
		WatchesMetadata(&admissionv1.MutatingWebhookConfiguration{}, toUs, builder.WithPredicates(c.foreignChange())).
		WatchesMetadata(&admissionv1.ValidatingWebhookConfiguration{}, toUs, builder.WithPredicates(c.foreignChange())).
		Complete(c)
}

// foreignChange selects changes of a target by others.
func (c *Certs) foreignChange() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetLabels()[config.LabelInjectCA] == "true" && c.injector.changed(obj)
	})
}

// secretCache holds exactly one object. The manager's own cache selects Secrets by label and
// namespace for other purposes.
func (c *Certs) secretCache(mgr ctrl.Manager) (cache.Cache, error) {
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{c.store.key.Namespace: {}},
			Field:      named(c.store.key.Name),
		}},
	})
	if err != nil {
		return nil, err
	}
	return secrets, mgr.Add(secrets)
}

func named(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
