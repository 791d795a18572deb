// Package bundles reconciles PackageBundles: it reports whether a bundle can be used, and deletes
// downloaded bundles that no cluster uses.
//
// It changes only the status of a bundle, because labels, finalizers and owners are part of the
// signed content. Package active selects the bundle of a cluster. Start with Reconcile; conditions
// are computed in status.go.
package bundles

import (
	"context"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Controller reconciles PackageBundles.
type Controller struct {
	// Client reads from the manager's cache.
	Client client.Client
	Events record.EventRecorder
	// Keys are the keys that may sign bundles.
	Keys bundle.Keys
	// Version is the version of Drover.
	Version string
	// Keep is the number of newest bundles per Kubernetes minor version that are kept even if no
	// cluster uses them. A negative number keeps all.
	Keep int
}

// visit is one reconcile of one bundle.
type visit = reconcile.Visit[*packagesv1.PackageBundle]

// Reconcile deletes a bundle that is no longer needed, or reports whether it can be used.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	opening := reconcile.Opening[*packagesv1.PackageBundle]{Client: c.Client}
	v, err := opening.Open(ctx, request.NamespacedName, &packagesv1.PackageBundle{})
	if v == nil || err != nil || v.Deleting() {
		return ctrl.Result{}, err
	}
	state := v.Object.Status.State
	outcome := reconcile.Run(ctx, v, []reconcile.Step[*visit]{
		{Doing: "deleting an unused bundle", Run: c.prune},
		{Doing: "verifying the bundle", Run: c.verify},
	})
	result, err := v.Close(ctx, outcome, 0)
	if v.Before().Status.State != state { // it was written
		c.recordState(v.Object)
	}
	return result, err
}

// verify checks the name, signature and required version of a bundle.
func (c *Controller) verify(_ context.Context, v *visit) error {
	report(v.Object, verify(v.Object, c.Keys, c.Version))
	return nil
}

// recordState records an event for a new state.
func (c *Controller) recordState(b *packagesv1.PackageBundle) {
	if b.Status.State == packagesv1.BundleAvailable {
		c.Events.Event(b, "Normal", "Available", "Bundle can be used")
		return
	}
	c.Events.Event(b, "Warning", "Refused", readyMessage(b))
}
