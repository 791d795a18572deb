package bundles

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// prune deletes a downloaded bundle that no cluster uses and that enough newer ones supersede.
func (c *Controller) prune(ctx context.Context, v *visit) error {
	b := v.Object
	needed, err := c.needed(ctx, b)
	if needed || err != nil {
		return err
	}
	err = c.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the change triggers another reconcile
		return reconcile.Stop
	}
	if err != nil {
		return err
	}
	pruned.Inc()
	c.Events.Eventf(b, "Normal", "Pruned", "Deleted bundle %q: no cluster uses it, and %d newer ones exist", b.Name, c.Keep)
	return reconcile.Stop
}

// needed reports whether to keep a bundle.
func (c *Controller) needed(ctx context.Context, b *packagesv1.PackageBundle) (bool, error) {
	if c.Keep < 0 || b.Namespace != packagesv1.Namespace || b.Annotations[packagesv1.DownloadedAnnotation] == "" {
		return true, nil
	}
	all, users := &packagesv1.PackageBundleList{}, &packagesv1.PackageBundleControllerList{}
	if err := c.Client.List(ctx, all, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing PackageBundles: %w", err)
	}
	if err := c.Client.List(ctx, users, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing PackageBundleControllers: %w", err)
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return used(b.Name, users.Items) || !superseded(b.Name, names, c.Keep), nil
}

// used reports whether a cluster uses a bundle or may be about to activate it.
func used(name string, users []packagesv1.PackageBundleController) bool {
	return slices.ContainsFunc(users, func(u packagesv1.PackageBundleController) bool {
		return u.Spec.ActiveBundle == name || u.Status.LatestBundle == name
	})
}

// superseded reports whether at least keep newer bundles for the same Kubernetes version exist.
// Bundles with invalid names neither supersede others nor are superseded.
func superseded(name string, all []string, keep int) bool {
	own, err := bundle.ParseName(name)
	if err != nil {
		return false
	}
	newer := 0
	for _, other := range all {
		n, err := bundle.ParseName(other)
		if err == nil && n.Kubernetes() == own.Kubernetes() && n.Compare(own) > 0 {
			newer++
		}
	}
	return newer >= keep
}
