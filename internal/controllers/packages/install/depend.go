package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// depend sees to the packages that this one needs: those that nobody has made are made for it. What is installed and stays as it is does not
// wait for them.
func (c *Controller) depend(ctx context.Context, s *scope) (bool, error) {
	if _, err := bundle.Dependencies(s.bundle, s.found); err != nil {
		s.undependable = &problem{packagesv1.DependenciesInvalidReason, invalid(s, err)}
		return false, nil
	}
	needed := s.found.Version.Dependencies
	c.memory.needs(s.key(), s.target.Cluster, needed)
	siblings, err := c.siblings(ctx, s)
	if err != nil {
		return false, err
	}
	for _, name := range needed {
		if err := c.dependOn(ctx, s, name, siblings); err != nil {
			return false, err
		}
	}
	if err := c.letGo(ctx, s, needed, siblings); err != nil {
		return false, err
	}
	slices.Sort(s.missing)
	s.looked = true
	return s.undependable == nil, nil
}

// invalid is in the words that people know, and says what is wrong.
func invalid(s *scope, err error) string {
	text := fmt.Sprintf("invalid package bundle. (%s@%s bundle: %s)", s.found.Package.Name, s.found.Version.Name, s.bundle.Name)
	if circle := new(*bundle.CycleError); errors.As(err, circle) {
		return bound(text + ": " + err.Error())
	}
	return text
}

// siblings are the other packages of the same cluster in the same namespace.
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

// dependOn looks for one dependency, notes whether it is missing, and makes it if nobody has.
func (c *Controller) dependOn(ctx context.Context, s *scope, name string, siblings []*packagesv1.Package) error {
	var there *packagesv1.Package
	for _, other := range siblings {
		if !strings.EqualFold(other.Spec.PackageName, name) {
			continue
		}
		if upToDate(other, s.bundle) {
			return c.join(ctx, s, other)
		}
		if there == nil || there.Name > other.Name {
			there = other
		}
	}
	s.missing = append(s.missing, name)
	if there == nil {
		return c.make(ctx, s, name)
	}
	return c.join(ctx, s, there)
}

// upToDate says that a package is installed as the bundle has it.
func upToDate(p *packagesv1.Package, b *packagesv1.PackageBundle) bool {
	found, err := bundle.Find(b, p.Spec.PackageName, p.Spec.PackageVersion)
	return err == nil && p.DeletionTimestamp.IsZero() && p.Status.State == packagesv1.StateInstalled &&
		p.Status.ObservedGeneration == p.Generation && p.Status.Source == sourceOf(found)
}

// make makes a package for this one. It has the config of this one if its schema accepts that.
func (c *Controller) make(ctx context.Context, s *scope, name string) error {
	made := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.pack.Namespace, Name: target.Name(s.pack.Namespace, s.target.Cluster, strings.ToLower(name)),
			Labels: c.labels(), Annotations: map[string]string{packagesv1.DependentsAnnotation: s.pack.Name},
		},
		Spec: packagesv1.PackageSpec{PackageName: name, TargetNamespace: s.pack.Spec.TargetNamespace},
	}
	if found, err := bundle.Find(s.bundle, name, ""); err == nil && c.configs.validate(found.Version, s.pack.Spec.Config) == nil {
		made.Spec.Config = s.pack.Spec.Config
	}
	err := c.Client.Create(ctx, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		return c.taken(ctx, s, name, made)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		s.undependable = &problem{packagesv1.DependenciesInvalidReason, bound(fmt.Sprintf("Package %q can't be made: %v", made.Name, err))}
		return nil
	case err != nil:
		return fmt.Errorf("making Package %q, which %q depends on: %w", made.Name, s.pack.Name, err)
	}
	c.Events.Eventf(s.pack, corev1.EventTypeNormal, dependencyMadeReason, "Made Package %q, which this one depends on", made.Name)
	return nil
}

// taken looks at what has the name already: most likely a package that the cache does not know about yet, which will be an event.
func (c *Controller) taken(ctx context.Context, s *scope, name string, made *packagesv1.Package) error {
	there := &packagesv1.Package{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(made), there); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !strings.EqualFold(there.Spec.PackageName, name) {
		s.undependable = &problem{packagesv1.DependenciesInvalidReason, fmt.Sprintf(
			"a Package of %s is needed, but Package %q is one of %s", name, there.Name, there.Spec.PackageName)}
	}
	return nil
}
