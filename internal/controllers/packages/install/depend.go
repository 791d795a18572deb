package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// ensureDependencies creates missing dependencies. An installed release that doesn't change doesn't
// wait for them.
func (c *Controller) ensureDependencies(ctx context.Context, s *scope) error {
	if _, s.graphErr = bundle.Dependencies(s.bundle, s.found); s.graphErr != nil {
		return reconcile.Stop
	}
	needed := s.found.Version.Dependencies
	c.memory.needs(s.Key(), s.target.Cluster, needed)
	siblings, err := c.siblings(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range needed {
		if err := c.ensureDependency(ctx, s, name, siblings); err != nil {
			return err
		}
	}
	if err := c.releaseUnneeded(ctx, s, needed, siblings); err != nil {
		return err
	}
	slices.Sort(s.missing)
	s.dependenciesKnown = true
	if s.dependencyErr != nil {
		return reconcile.Stop
	}
	return nil
}

// siblings returns the other packages of the cluster in the same namespace.
func (c *Controller) siblings(ctx context.Context, s *scope) ([]*packagesv1.Package, error) {
	list := &packagesv1.PackageList{}
	err := c.Client.List(ctx, list, client.InNamespace(s.pack.Namespace), client.MatchingFields{packagesByCluster: s.target.Cluster}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing packages of cluster %q: %w", s.target.Cluster, err)
	}
	var out []*packagesv1.Package
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == s.pack.UID {
			continue
		}
		if t, err := c.targetOf(ctx, other); err == nil && t.Cluster == s.target.Cluster {
			out = append(out, other)
		}
	}
	return out, nil
}

// ensureDependency finds a dependency, records whether it is missing, and creates it if necessary.
func (c *Controller) ensureDependency(ctx context.Context, s *scope, name string, siblings []*packagesv1.Package) error {
	var existing *packagesv1.Package
	for _, other := range siblings {
		if !strings.EqualFold(other.Spec.PackageName, name) {
			continue
		}
		if upToDate(other, s.bundle) {
			return c.join(ctx, s, other)
		}
		if existing == nil || existing.Name > other.Name {
			existing = other
		}
	}
	s.missing = append(s.missing, name)
	if existing == nil {
		return c.createDependency(ctx, s, name)
	}
	return c.join(ctx, s, existing)
}

// upToDate reports whether the version in the bundle is installed.
func upToDate(p *packagesv1.Package, b *packagesv1.PackageBundle) bool {
	found, err := bundle.Find(b, p.Spec.PackageName, p.Spec.PackageVersion)
	return err == nil && p.DeletionTimestamp.IsZero() && p.Status.State == packagesv1.StateInstalled &&
		p.Status.ObservedGeneration == p.Generation && p.Status.Source == sourceOf(found)
}

// createDependency creates a dependency, with the config of this Package if its schema accepts it.
func (c *Controller) createDependency(ctx context.Context, s *scope, name string) error {
	made := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.pack.Namespace, Name: target.Name(s.pack.Namespace, s.target.Cluster, strings.ToLower(name)),
			Labels: c.labels(), Annotations: map[string]string{packagesv1.DependentsAnnotation: s.pack.Name},
		},
		Spec: packagesv1.PackageSpec{
			PackageName: name, TargetNamespace: s.pack.Spec.TargetNamespace, ServiceAccountName: s.pack.Spec.ServiceAccountName,
		},
	}
	if found, err := bundle.Find(s.bundle, name, ""); err == nil && c.configs.validate(found.Version, s.pack.Spec.Config) == nil {
		made.Spec.Config = s.pack.Spec.Config
	}
	err := c.Client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		return c.checkExisting(ctx, s, name, made)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		s.dependencyErr = &dependencyError{made.Name, err}
		return nil
	case err != nil:
		return fmt.Errorf("creating Package %q: %w", made.Name, err)
	}
	c.Events.Eventf(s.pack, corev1.EventTypeNormal, dependencyMadeReason, "Created Package %q as a dependency", made.Name)
	return nil
}

// checkExisting checks the Package that has the name of a dependency: usually one that the cache
// doesn't contain yet.
func (c *Controller) checkExisting(ctx context.Context, s *scope, name string, made *packagesv1.Package) error {
	existing := &packagesv1.Package{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(made), existing); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !strings.EqualFold(existing.Spec.PackageName, name) {
		s.dependencyErr = &dependencyError{existing.Name, fmt.Errorf("it exists and installs %s instead of %s", existing.Spec.PackageName, name)}
	}
	return nil
}
