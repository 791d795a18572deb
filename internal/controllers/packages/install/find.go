package install

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// findRelease reads the HelmReleaseProxy, which has the name of the Package.
func (c *Controller) findRelease(ctx context.Context, s *scope) error {
	existing := &addonsv1.HelmReleaseProxy{}
	err := c.Client.Get(ctx, s.Key(), existing)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading HelmReleaseProxy %q: %w", s.Key(), err)
	case metav1.IsControlledBy(existing, s.pack):
		s.release = existing
	default:
		s.foreign = true
	}
	return nil
}

// findTarget determines the cluster of the Package.
func (c *Controller) findTarget(ctx context.Context, s *scope) error {
	t, err := c.targetOf(ctx, s.pack)
	if err == nil {
		err = c.findCluster(ctx, s, t)
	}
	if target.IsUnclear(err) {
		s.targetErr = err
		return reconcile.Stop
	}
	return err
}

// targetOf returns the target of a Package by its name. A known target doesn't change, not even if
// its PackageBundleController is deleted: the name may fit another cluster too.
func (c *Controller) targetOf(ctx context.Context, pack *packagesv1.Package) (target.Target, error) {
	key := client.ObjectKeyFromObject(pack)
	var failed error
	find := func(cluster string) (string, bool) {
		found := &packagesv1.PackageBundleController{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster}, found)
		if client.IgnoreNotFound(err) != nil {
			failed = fmt.Errorf("reading PackageBundleController %q: %w", cluster, err)
		}
		return owner.Users(found), err == nil
	}
	if known := pack.Status.Target; known != nil {
		t := target.Target{Cluster: known.Cluster, Release: known.Release}
		if target.Still(key, t) {
			if _, exists := find(t.Cluster); exists || failed != nil {
				return t, failed
			}
			return t, &target.UnknownError{Message: fmt.Sprintf("PackageBundleController %q not found in namespace %q", t.Cluster, packagesv1.Namespace)}
		}
	}
	t, err := target.Of(key, find)
	return t, errors.Join(failed, err)
}

// findCluster finds the Cluster of a target. A release stays on its Cluster as long as that exists.
func (c *Controller) findCluster(ctx context.Context, s *scope, t target.Target) error {
	s.controller = &packagesv1.PackageBundleController{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: t.Cluster}, s.controller); err != nil {
		return fmt.Errorf("reading PackageBundleController %q: %w", t.Cluster, err)
	}
	list := &clusterv1.ClusterList{}
	if err := c.Client.List(ctx, list, client.MatchingFields{clustersByName: t.Cluster}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	cluster := s.releasedOn(list.Items)
	if cluster == nil {
		var err error
		if cluster, err = target.Cluster(s.controller, list.Items); err != nil {
			return err
		}
	}
	if err := s.checkRecreated(cluster); err != nil {
		return err
	}
	if err := c.checkNamespace(ctx, s.pack.Namespace, cluster); err != nil {
		return err
	}
	own := c.checkNamespace(ctx, packagesv1.NamespacePrefix+cluster.Name, cluster)
	s.foreignNamespace = errors.As(own, new(*target.DeniedError))
	s.aim(t, cluster)
	return nil
}

// checkRecreated denies a Cluster that is not the one that the Package was installed on. Whoever
// chose its name has no right to the package, and the Package none to the Cluster.
func (s *scope) checkRecreated(cluster *clusterv1.Cluster) error {
	known := s.pack.Status.Target
	if known == nil || known.ClusterUID == "" && s.release == nil || target.Installed(known, s.release, cluster) {
		return nil
	}
	return &target.DeniedError{Message: fmt.Sprintf("the Package was installed on another Cluster %q, which was deleted: delete the Package and create it again", cluster.Name)}
}

// releasedOn returns the Cluster of the release, nil if it is gone.
func (s *scope) releasedOn(clusters []clusterv1.Cluster) *clusterv1.Cluster {
	if s.release == nil {
		return nil
	}
	ref := s.release.Spec.ClusterRef
	for i := range clusters {
		if c := &clusters[i]; ref.Namespace == c.Namespace && ref.Name == c.Name && target.Accepts(s.controller, c) {
			return c
		}
	}
	return nil
}

// checkNamespace denies packages in a namespace that was not created for the Cluster. Whoever may
// write there need not have a right to the Cluster.
func (c *Controller) checkNamespace(ctx context.Context, name string, cluster *clusterv1.Cluster) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.metadata.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return fmt.Errorf("reading namespace %q: %w", name, err)
	}
	return target.CheckNamespace(cluster, namespace)
}

func (f *facts) aim(t target.Target, cluster *clusterv1.Cluster) {
	f.tenant = target.Tenant(cluster)
	f.target = &packagesv1.PackageTarget{Cluster: cluster.Name, ClusterNamespace: cluster.Namespace, ClusterUID: owner.UID(cluster), Release: t.Release}
	if f.release != nil {
		f.target.Namespace = f.release.Spec.ReleaseNamespace
	}
}

// findSource finds the version of the package in the active bundle.
func (c *Controller) findSource(ctx context.Context, s *scope) error {
	name := s.controller.Spec.ActiveBundle
	if name == "" {
		return reconcile.Stop
	}
	var err error
	s.bundle, err = c.bundleNamed(ctx, name)
	if apierrors.IsNotFound(err) {
		s.bundleErr = err
		return reconcile.Stop
	}
	if err != nil {
		return fmt.Errorf("reading PackageBundle %q: %w", name, err)
	}
	s.found, s.findErr = bundle.Find(s.bundle, s.pack.Spec.PackageName, s.pack.Spec.PackageVersion)
	if s.findErr != nil {
		return reconcile.Stop
	}
	s.upgrades, err = c.findUpgrades(ctx, s)
	return err
}

func (c *Controller) bundleNamed(ctx context.Context, name string) (*packagesv1.PackageBundle, error) {
	b := &packagesv1.PackageBundle{}
	return b, c.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}, b)
}

// findUpgrades returns the upgrade in the newest bundle for the cluster, if there is one.
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
		return nil, nil //nolint:nilerr // a package that the newest bundle lacks has no upgrade
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

// isMissing reports whether an object doesn't exist.
func isMissing(ctx context.Context, reader client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := reader.Get(ctx, key, into)
	return err != nil, client.IgnoreNotFound(err)
}
