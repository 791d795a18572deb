package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/stages"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// addOns returns the add-ons of the cluster that have a stage in an upgrade to a version, and
// whether each is ready for it.
func (c *Controller) addOns(ctx context.Context, s *scope, to string) ([]lockstep.AddOn, error) {
	if s.live.cluster == nil {
		return nil, nil
	}
	return stages.Reader{Reader: c.Client, Indexed: c.Indexed, Behind: c.behindBundle}.Of(ctx, s.live.cluster, to)
}

// behindBundle returns why a package hasn't changed to the bundle of the new version, or an empty
// string. Only the policy to always activate new bundles promises that it does by itself.
func (c *Controller) behindBundle(ctx context.Context, cluster string, p stages.Package, to string) (string, error) {
	controller := &packagesv1.PackageBundleController{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster}, controller)
	if err != nil || controller.Spec.UpgradePolicy != packagesv1.UpgradeAlways {
		return "", client.IgnoreNotFound(err)
	}
	active := controller.Spec.ActiveBundle
	if name, err := bundle.ParseName(active); err != nil || !lockstep.SameMinor(name.Kubernetes(), to) {
		return "waiting for a bundle for Kubernetes " + to, nil //nolint:nilerr // no bundle is active
	}
	b := &packagesv1.PackageBundle{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: active}, b); err != nil {
		return "waiting for bundle " + active, client.IgnoreNotFound(err)
	}
	found, err := bundle.Find(b, p.Spec.PackageName, p.Spec.PackageVersion)
	if err != nil || found.Version.Digest == p.Release.Spec.Version {
		return "", nil //nolint:nilerr // the status of the Package reports what the bundle lacks
	}
	return "not installed from bundle " + active + " yet", nil
}
