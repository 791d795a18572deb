package change

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "gitchange"

// maxTurns bounds the changes that are woken at the same moment.
const maxTurns = 1024

// SetupWithManager adds the controller and its watches. Of Secrets, only the metadata is watched.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, metadata cache.Cache, o controller.Options) error {
	turns := make(chan event.GenericEvent, maxTurns)
	c.repositories.wake = func(request ctrl.Request) {
		select {
		case turns <- event.GenericEvent{Object: &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}}:
		default: // It is reconciled again after a while, as it is after a restart.
		}
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	to := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&droverv1.GitChange{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&droverv1.GitChange{}, handler.EnqueueRequestsFromMapFunc(c.ofSibling), builder.WithPredicates(siblingChanged())).
		Watches(&anywherev1.FluxConfig{}, handler.EnqueueRequestsFromMapFunc(c.ofConfig), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&anywherev1.GitOpsConfig{}, handler.EnqueueRequestsFromMapFunc(c.ofConfig), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&anywherev1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(onlyDeletions())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(c.ofSource), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(c.ofKustomization), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Kind(metadata, client.Object(secret), handler.EnqueueRequestsFromMapFunc(c.ofSecret), predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Channel(turns, &handler.EnqueueRequestForObject{})).
		WithOptions(reconcile.NewGuard(mgr, "GitChange").Options(o))
	if c.Support.Served() {
		to = to.Watches(&sourcev1.ExternalArtifact{}, handler.EnqueueRequestsFromMapFunc(c.ofKustomization), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	if err := to.Complete(c); err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// siblingChanged passes events that let the next change of a cluster begin, or that make one
// superfluous.
func siblingChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*droverv1.GitChange)
			is, ok2 := e.ObjectNew.(*droverv1.GitChange)
			return ok && ok2 && !equality.Semantic.DeepEqual(was.Status, is.Status) && (progress.IsCommitted(is) || progress.IsFinished(is))
		},
	}
}

func onlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// ofSibling returns the other changes of a cluster.
func (c *Controller) ofSibling(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	change, ok := o.(*droverv1.GitChange)
	if !ok {
		return nil
	}
	return c.requests(ctx, o.GetNamespace(), func(other *droverv1.GitChange) bool {
		return other.Spec.Cluster == change.Spec.Cluster && other.Name != change.Name
	})
}

// ofConfig returns the changes that wait for a FluxConfig.
func (c *Controller) ofConfig(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	return c.requests(ctx, o.GetNamespace(), func(change *droverv1.GitChange) bool {
		return change.Spec.FluxConfig == o.GetName() && !progress.IsCommitted(change) && !progress.IsFinished(change)
	})
}

// ofSecret returns the changes that wait for credentials.
func (c *Controller) ofSecret(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	if o.GetNamespace() != c.FluxNamespace || o.GetName() != anywherev1.GitCredentials {
		return nil
	}
	return c.requests(ctx, metav1.NamespaceAll, func(change *droverv1.GitChange) bool {
		return !progress.IsCommitted(change) && !progress.IsFinished(change)
	})
}

// ofSource returns the changes that wait for Flux.
func (c *Controller) ofSource(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	if o.GetNamespace() != c.FluxNamespace || o.GetName() != anywherev1.GitCredentials {
		return nil
	}
	return c.requests(ctx, metav1.NamespaceAll, isWaiting)
}

// ofKustomization returns the changes that wait for Flux to apply a cluster, of which an object is
// the Kustomization or its source. That of a management
// cluster is in the namespace of Flux.
func (c *Controller) ofKustomization(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	cluster, namespace := o.GetLabels()[anywherev1.GitClusterLabel], o.GetNamespace()
	if namespace == c.FluxNamespace {
		namespace = metav1.NamespaceAll
	}
	return c.requests(ctx, namespace, func(change *droverv1.GitChange) bool { return change.Spec.Cluster == cluster && isWaiting(change) })
}

// ofCluster returns the changes that wait for the deletion of a Cluster.
func (c *Controller) ofCluster(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	return c.requests(ctx, o.GetNamespace(), func(change *droverv1.GitChange) bool { return change.Spec.Cluster == o.GetName() && isWaiting(change) })
}

// isWaiting reports whether a change waits for Flux.
func isWaiting(change *droverv1.GitChange) bool {
	return progress.IsCommitted(change) && !progress.IsFinished(change)
}

// requests returns the changes that an event concerns.
func (c *Controller) requests(ctx context.Context, namespace string, concerns func(*droverv1.GitChange) bool) []ctrlreconcile.Request {
	all := &droverv1.GitChangeList{}
	if err := c.Client.List(ctx, all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	var out []ctrlreconcile.Request
	for i := range all.Items {
		if change := &all.Items[i]; concerns(change) {
			out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(change)})
		}
	}
	return out
}
