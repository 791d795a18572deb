package commitstatus

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "gitops-commitstatus"

// SetupWithManager adds the controller and its watches. Of Secrets, only the metadata is watched.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, metadata cache.Cache, o controller.Options) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := ctrl.NewControllerManagedBy(mgr).Named(name).
		For(&sourcev1.GitRepository{}).
		Watches(&anywherev1.FluxConfig{}, handler.EnqueueRequestsFromMapFunc(ofConfig)).
		WatchesRawSource(source.Kind(metadata, client.Object(secret), handler.EnqueueRequestsFromMapFunc(ofSecret))).
		WithOptions(reconcile.NewGuard(mgr, "CommitStatus").Options(o)).Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

func ofConfig(_ context.Context, o client.Object) []ctrl.Request {
	config, ok := o.(*anywherev1.FluxConfig)
	if !ok {
		return nil
	}
	return []ctrl.Request{{NamespacedName: connection.Key(config)}}
}

func ofSecret(_ context.Context, o client.Object) []ctrl.Request {
	if o.GetName() != anywherev1.GitCredentials {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}
