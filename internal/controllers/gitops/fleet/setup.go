package fleet

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/removal"
)

const name = "gitops-fleet"

// Labels with which kustomize-controller marks what a Kustomization has applied.
var (
	kustomizationNameLabel      = kustomizev1.GroupVersion.Group + "/name"
	kustomizationNamespaceLabel = kustomizev1.GroupVersion.Group + "/namespace"
)

// SetupWithManager adds the controller and its watches. The status of Kustomizations is not its
// business: FluxConfigs show it.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, metadata cache.Cache, o controller.Options) error {
	c.Metadata, c.HTTP = metadata, newClient()
	err := ctrl.NewControllerManagedBy(mgr).Named(name).
		For(&sourcev1.GitRepository{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: fetched})).
		Watches(&anywherev1.FluxConfig{}, handler.EnqueueRequestsFromMapFunc(ofConfig), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(ofKustomization),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: answered}))).
		Watches(&anywherev1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(predicate.Funcs{UpdateFunc: usageChanged})).
		Watches(&droverv1.GitChange{}, handler.EnqueueRequestsFromMapFunc(c.ofChange), builder.WithPredicates(removalEnded())).
		WatchesRawSource(source.Kind(metadata, client.Object(metaOfSecret()), handler.EnqueueRequestsFromMapFunc(ofSecret))).
		WithOptions(reconcile.NewGuard(mgr, "GitOpsFleet").Options(o)).Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// fetched reports whether a GitRepository has another artifact or another spec, or has handled a
// request.
func fetched(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*sourcev1.GitRepository)
	is, same := e.ObjectNew.(*sourcev1.GitRepository)
	if !ok || !same || was.Generation != is.Generation {
		return ok && same
	}
	if was.Status.LastHandledReconcileAt != is.Status.LastHandledReconcileAt || isReady(was) != isReady(is) {
		return true
	}
	a, b := was.Status.Artifact, is.Status.Artifact
	return (a == nil) != (b == nil) || a != nil && (a.Digest != b.Digest || a.Revision != b.Revision || a.URL != b.URL)
}

func isReady(r *sourcev1.GitRepository) bool {
	return apimeta.IsStatusConditionTrue(r.Status.Conditions, fluxmeta.ReadyCondition)
}

// answered reports whether kustomize-controller tells something new about the kind of sources.
func answered(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*kustomizev1.Kustomization)
	is, same := e.ObjectNew.(*kustomizev1.Kustomization)
	return ok && same && (is.Name == probeName || isDenied(was) != isDenied(is))
}

// usageChanged reports whether a Cluster may be removed now, or may not any more.
func usageChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*anywherev1.Cluster)
	is, same := e.ObjectNew.(*anywherev1.Cluster)
	return ok && same && (removal.Waits(was) != removal.Waits(is) || removal.IsConfirmed(was) != removal.IsConfirmed(is) ||
		was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero())
}

// removalEnded passes events after which a GitChange no longer keeps a confirmation: it is finished
// or deleted.
func removalEnded() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*droverv1.GitChange)
			is, same := e.ObjectNew.(*droverv1.GitChange)
			return ok && same && isRemoval(is) && (progress.IsFinished(was) != progress.IsFinished(is) || progress.IsCommitted(was) != progress.IsCommitted(is))
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			change, ok := e.Object.(*droverv1.GitChange)
			return ok && isRemoval(change)
		},
	}
}

func ofConfig(_ context.Context, o client.Object) []ctrl.Request {
	config, ok := o.(*anywherev1.FluxConfig)
	if !ok {
		return nil
	}
	return []ctrl.Request{{NamespacedName: connection.Key(config)}}
}

// ofChange returns the repository that a GitChange is for.
func (c *Controller) ofChange(ctx context.Context, o client.Object) []ctrl.Request {
	change, ok := o.(*droverv1.GitChange)
	if !ok {
		return nil
	}
	config, err := connection.Find(ctx, c.Client, client.ObjectKey{Namespace: change.Namespace, Name: change.Spec.FluxConfig})
	if err != nil {
		return nil // An event of the FluxConfig follows.
	}
	return ofConfig(ctx, config)
}

func ofKustomization(_ context.Context, o client.Object) []ctrl.Request {
	k, ok := o.(*kustomizev1.Kustomization)
	if !ok || k.Labels[ManagedByLabel] != ManagedBy {
		return nil
	}
	return []ctrl.Request{{NamespacedName: SourceOf(k)}}
}

// ofCluster returns the repository that a Cluster was applied from.
func (c *Controller) ofCluster(ctx context.Context, o client.Object) []ctrl.Request {
	labels := o.GetLabels()
	key := client.ObjectKey{Namespace: labels[kustomizationNamespaceLabel], Name: labels[kustomizationNameLabel]}
	k := &kustomizev1.Kustomization{}
	if key.Name == "" || c.Client.Get(ctx, key, k) != nil {
		return nil // An event of the Kustomization follows.
	}
	return ofKustomization(ctx, k)
}

func ofSecret(_ context.Context, o client.Object) []ctrl.Request {
	if o.GetName() != anywherev1.GitCredentials {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

func metaOfSecret() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return meta
}
