package bundles

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

const name = "packagebundle"

var pruned = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "drover_packages_bundles_pruned_total", Help: "Bundles removed because no cluster used them.",
})

func registerMetrics() error {
	err := metrics.Registry.Register(pruned)
	if _, there := err.(prometheus.AlreadyRegisteredError); there { //nolint:errorlint // the registry returns it as it is
		return nil
	}
	return err
}

// SetupWithManager adds the controller, which watches bundles and the PackageBundleControllers that
// use them.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	if err := registerMetrics(); err != nil {
		return fmt.Errorf("registering metrics of controller %q: %w", name, err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&packagesv1.PackageBundle{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&packagesv1.PackageBundle{}, handler.EnqueueRequestsFromMapFunc(c.older), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(&packagesv1.PackageBundleController{}, handler.EnqueueRequestsFromMapFunc(c.downloaded), builder.WithPredicates(choiceChanged())).
		WithOptions(reconcile.NewGuard(mgr, "PackageBundle").Options(o)).
		Complete(c)
}

// choiceChanged passes updates that change which bundles are used.
func choiceChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*packagesv1.PackageBundleController)
			is, ok2 := e.ObjectNew.(*packagesv1.PackageBundleController)
			return ok && ok2 && (was.Spec.ActiveBundle != is.Spec.ActiveBundle || was.Status.LatestBundle != is.Status.LatestBundle)
		},
	}
}

// downloaded returns the bundles that may be pruned.
func (c *Controller) downloaded(ctx context.Context, _ client.Object) []ctrlreconcile.Request {
	return c.removable(ctx, func(string) bool { return true })
}

// older returns the bundles that a new bundle may supersede.
func (c *Controller) older(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	is, err := bundle.ParseName(o.GetName())
	if err != nil {
		return nil
	}
	return c.removable(ctx, func(name string) bool {
		other, err := bundle.ParseName(name)
		return err == nil && other.Kubernetes() == is.Kubernetes() && other.Compare(is) < 0
	})
}

func (c *Controller) removable(ctx context.Context, concerned func(name string) bool) []ctrlreconcile.Request {
	all := &packagesv1.PackageBundleList{}
	if err := c.Client.List(ctx, all, client.InNamespace(packagesv1.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	var out []ctrlreconcile.Request
	for i := range all.Items {
		if b := &all.Items[i]; b.Annotations[packagesv1.DownloadedAnnotation] != "" && concerned(b.Name) {
			out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}
