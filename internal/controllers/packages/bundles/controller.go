// Package bundles reconciles PackageBundles: it says whether one can be used, and removes those that were downloaded and that nobody needs
// any more.
//
// It changes nothing of a bundle but its status: labels, finalizers and owners are part of what is signed. Which cluster uses which bundle
// is package active's concern. Start with Reconcile; the choices are in judge.go.
package bundles

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Controller reconciles PackageBundles.
type Controller struct {
	// Client reads from the manager's cache.
	Client client.Client
	Events record.EventRecorder
	// Keys are those that bundles may be signed with.
	Keys bundle.Keys
	// Version is Drover's own.
	Version string
	// Keep is how many bundles of each minor version of Kubernetes stay although nobody uses them, the newest; all if it is negative.
	Keep int
}

// Reconcile judges one bundle.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	before := &packagesv1.PackageBundle{}
	if err := c.Client.Get(ctx, request.NamespacedName, before); err != nil || !before.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	surplus, err := c.surplus(ctx, before)
	if err != nil {
		return ctrl.Result{}, err
	}
	if surplus {
		return ctrl.Result{}, c.prune(ctx, before)
	}
	b := before.DeepCopy()
	report(b, judge(b, c.Keys, c.Version))
	if reflect.DeepEqual(before.Status, b.Status) {
		return ctrl.Result{}, nil
	}
	if err := c.Client.Status().Patch(ctx, b, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if b.Status.State != before.Status.State {
		c.tell(b)
	}
	return ctrl.Result{}, nil
}

// surplus looks at the other bundles and at who uses which.
func (c *Controller) surplus(ctx context.Context, b *packagesv1.PackageBundle) (bool, error) {
	if c.Keep < 0 || b.Namespace != packagesv1.Namespace || b.Annotations[packagesv1.DownloadedAnnotation] == "" {
		return false, nil
	}
	all, users := &packagesv1.PackageBundleList{}, &packagesv1.PackageBundleControllerList{}
	if err := c.Client.List(ctx, all, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing bundles: %w", err)
	}
	if err := c.Client.List(ctx, users, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing who uses bundles: %w", err)
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return !used(b.Name, users.Items) && superseded(b.Name, names, c.Keep), nil
}

// prune removes a bundle, as it was seen and not otherwise.
func (c *Controller) prune(ctx context.Context, b *packagesv1.PackageBundle) error {
	err := c.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // Whoever changed it has made an event of that.
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing bundle %q, which nobody uses: %w", b.Name, err)
	}
	pruned.Inc()
	c.Events.Eventf(b, "Normal", "Pruned", "Removed bundle %q, which no cluster uses and %d newer ones follow", b.Name, c.Keep)
	return nil
}

func (c *Controller) tell(b *packagesv1.PackageBundle) {
	if b.Status.State == packagesv1.BundleAvailable {
		c.Events.Event(b, "Normal", "Available", "The bundle can be used")
		return
	}
	message := string(b.Status.State)
	for _, condition := range b.Status.Conditions {
		if condition.Type == packagesv1.Ready && condition.Message != "" {
			message = condition.Message
		}
	}
	c.Events.Event(b, "Warning", "Refused", message)
}
