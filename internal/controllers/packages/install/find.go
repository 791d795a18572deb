package install

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// errStale says that the cache does not know yet what this controller has written.
var errStale = errors.New("the cache is behind")

// findRelease looks for the HelmReleaseProxy, which has the name of the Package.
func (c *Controller) findRelease(ctx context.Context, s *scope) (bool, error) {
	there := &addonsv1.HelmReleaseProxy{}
	err := c.Client.Get(ctx, s.key(), there)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading HelmReleaseProxy %q: %w", s.key(), err)
	case c.releases.Stale(there):
		return false, errStale
	case metav1.IsControlledBy(there, s.pack):
		s.release = there
	default:
		s.stuck = &problem{packagesv1.InstallFailedReason, fmt.Sprintf("HelmReleaseProxy %q belongs to somebody else", s.key())}
	}
	return true, nil
}

// findTarget finds out which cluster the Package is for.
func (c *Controller) findTarget(ctx context.Context, s *scope) (bool, error) {
	t, err := c.targetOf(ctx, s.pack)
	if err == nil {
		err = c.findCluster(ctx, s, t)
	}
	unknown, ambiguous := new(*target.UnknownError), new(*target.AmbiguousError)
	if errors.Is(err, target.ErrNamespace) || errors.As(err, unknown) || errors.As(err, ambiguous) {
		s.untargeted = err
		return false, nil
	}
	return err == nil, err
}

// targetOf is what a Package is for by its name. What was found before stays.
func (c *Controller) targetOf(ctx context.Context, pack *packagesv1.Package) (target.Target, error) {
	key := client.ObjectKeyFromObject(pack)
	var failed error
	exists := func(cluster string) bool {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster}, &packagesv1.PackageBundleController{})
		if client.IgnoreNotFound(err) != nil {
			failed = fmt.Errorf("reading PackageBundleController %q: %w", cluster, err)
		}
		return err == nil
	}
	if known := pack.Status.Target; known != nil {
		t := target.Target{Cluster: known.Cluster, Release: known.Release}
		if target.Still(key, t) && exists(t.Cluster) {
			return t, nil
		}
	}
	t, err := target.Of(key, exists)
	return t, errors.Join(failed, err)
}

// findCluster finds the Cluster of a target. A release does not move to another of the same name as long as its own is there.
func (c *Controller) findCluster(ctx context.Context, s *scope, t target.Target) error {
	s.controller = &packagesv1.PackageBundleController{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: t.Cluster}, s.controller); err != nil {
		return fmt.Errorf("reading PackageBundleController %q: %w", t.Cluster, err)
	}
	list := &clusterv1.ClusterList{}
	if err := c.Client.List(ctx, list, client.MatchingFields{clustersByName: t.Cluster}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	found := make([]client.ObjectKey, 0, len(list.Items))
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		if s.release != nil && s.release.Spec.ClusterRef.Namespace == key.Namespace && s.release.Spec.ClusterRef.Name == key.Name {
			s.aim(t, key)
			return nil
		}
		found = append(found, key)
	}
	key, err := target.Cluster(t.Cluster, s.controller.Spec.ClusterNamespace, found)
	if err == nil {
		s.aim(t, key)
	}
	return err
}

func (f *facts) aim(t target.Target, cluster client.ObjectKey) {
	f.target = &packagesv1.PackageTarget{Cluster: cluster.Name, ClusterNamespace: cluster.Namespace, Release: t.Release}
	if f.release != nil {
		f.target.Namespace = f.release.Spec.ReleaseNamespace
	}
}

// findSource finds what the active bundle has.
func (c *Controller) findSource(ctx context.Context, s *scope) (bool, error) {
	name := s.controller.Spec.ActiveBundle
	if name == "" {
		s.unsourced = &problem{packagesv1.NoActiveBundleReason, "no activeBundle set in PackageBundleController"}
		return false, nil
	}
	var err error
	if s.bundle, err = c.bundleNamed(ctx, name); err != nil {
		if apierrors.IsNotFound(err) {
			s.unsourced = &problem{packagesv1.NoActiveBundleReason, err.Error()}
			return false, nil
		}
		return false, fmt.Errorf("reading PackageBundle %q: %w", name, err)
	}
	if s.found, err = bundle.Find(s.bundle, s.pack.Spec.PackageName, s.pack.Spec.PackageVersion); err != nil {
		s.unsourced = &problem{packagesv1.NotInBundleReason, notThere(s.pack, s.bundle, err)}
		return false, nil
	}
	s.upgrades, err = c.findUpgrades(ctx, s)
	return err == nil, err
}

func (c *Controller) bundleNamed(ctx context.Context, name string) (*packagesv1.PackageBundle, error) {
	b := &packagesv1.PackageBundle{}
	return b, c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}, b)
}

// notThere is in the words that people know.
func notThere(p *packagesv1.Package, b *packagesv1.PackageBundle, err error) string {
	if noVersion := new(*bundle.NoVersionError); errors.As(err, noVersion) {
		return fmt.Sprintf("Package %s@%s is not in the active bundle (%s).", p.Spec.PackageName, p.Spec.PackageVersion, b.Name)
	}
	return fmt.Sprintf("Package %s is not in the active bundle (%s).", p.Spec.PackageName, b.Name)
}

// findUpgrades looks into the newest bundle that is known for the cluster, if it is here.
func (c *Controller) findUpgrades(ctx context.Context, s *scope) ([]packagesv1.PackageAvailableUpgrade, error) {
	latest := s.controller.Status.LatestBundle
	if !newer(latest, s.bundle.Name) {
		return nil, nil
	}
	b, err := c.bundleNamed(ctx, latest)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	found, err := bundle.Find(b, s.pack.Spec.PackageName, "")
	if err != nil || found.Version.Digest == s.found.Version.Digest {
		return nil, nil //nolint:nilerr // a package that is gone from the newest bundle has no upgrade
	}
	return []packagesv1.PackageAvailableUpgrade{{Version: found.Version.Name, Tag: latest}}, nil
}

func newer(a, than string) bool {
	x, err := bundle.ParseName(a)
	if err != nil {
		return false
	}
	y, err := bundle.ParseName(than)
	return err == nil && x.Compare(y) > 0
}
