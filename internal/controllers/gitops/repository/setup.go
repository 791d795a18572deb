package repository

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "gitops-repository"

// SetupWithManager adds the controller and its watches.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, metadata cache.Cache, o controller.Options) error {
	c.Metadata = metadata
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	credentials := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == anywherev1.GitCredentials })
	to := ctrl.NewControllerManagedBy(mgr).Named(name).
		For(&anywherev1.FluxConfig{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(c.ofRepository)).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(c.ofKustomization)).
		WatchesRawSource(source.Kind(metadata, client.Object(secret), handler.EnqueueRequestsFromMapFunc(c.ofRepository), credentials)).
		WatchesRawSource(source.TypedChannel(c.Reports.Changed(), handler.TypedEnqueueRequestsFromMapFunc(ofReport))).
		WithOptions(reconcile.NewGuard(mgr, "FluxConfig").Options(o))
	if c.Support.Served() {
		to = to.Watches(&sourcev1.ExternalArtifact{}, handler.EnqueueRequestsFromMapFunc(c.ofExternalArtifact))
	}
	if err := to.Complete(c); err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

func ofReport(_ context.Context, key client.ObjectKey) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: key}}
}

// ofRepository returns the FluxConfigs that name a GitRepository, or its credentials.
func (c *Controller) ofRepository(ctx context.Context, o client.Object) []ctrl.Request {
	return c.configsOf(ctx, client.ObjectKeyFromObject(o))
}

func (c *Controller) ofKustomization(ctx context.Context, o client.Object) []ctrl.Request {
	k, ok := o.(*kustomizev1.Kustomization)
	if !ok || k.Labels[anywherev1.GitClusterLabel] == "" {
		return nil
	}
	return c.configsOf(ctx, fleet.SourceOf(k))
}

func (c *Controller) ofExternalArtifact(ctx context.Context, o client.Object) []ctrl.Request {
	e, ok := o.(*sourcev1.ExternalArtifact)
	if !ok {
		return nil
	}
	return c.configsOf(ctx, fleet.RepositoryOf(e))
}

func (c *Controller) configsOf(ctx context.Context, repository client.ObjectKey) []ctrl.Request {
	configs := &anywherev1.FluxConfigList{}
	if err := c.Client.List(ctx, configs); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing FluxConfigs", "GitRepository", repository)
		return nil
	}
	var all []ctrl.Request
	for i := range configs.Items {
		if connection.Key(&configs.Items[i]) == repository {
			all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&configs.Items[i])})
		}
	}
	return all
}
