package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// dependents returns the packages that a dependency was created for. Packages of users have none.
func dependents(p *packagesv1.Package) []string {
	text, ok := p.Annotations[packagesv1.DependentsAnnotation]
	if !ok || text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// join adds this Package to the dependents of another.
func (c *Controller) join(ctx context.Context, s *scope, other *packagesv1.Package) error {
	names := dependents(other)
	if len(names) == 0 || slices.Contains(names, s.pack.Name) || !other.DeletionTimestamp.IsZero() {
		return nil
	}
	return c.setDependents(ctx, other, append(names, s.pack.Name))
}

// releaseUnneeded removes this Package from the dependents of packages that it no longer needs.
func (c *Controller) releaseUnneeded(ctx context.Context, s *scope, needed []string, siblings []*packagesv1.Package) error {
	for _, other := range siblings {
		names := dependents(other)
		i := slices.Index(names, s.pack.Name)
		if i < 0 || !other.DeletionTimestamp.IsZero() || slices.ContainsFunc(needed, func(n string) bool { return strings.EqualFold(n, other.Spec.PackageName) }) {
			continue
		}
		if err := c.setOrDelete(ctx, other, slices.Delete(slices.Clone(names), i, i+1)); err != nil {
			return err
		}
	}
	return nil
}

// setOrDelete sets the dependents of a package, or deletes it if none are left. The precondition
// keeps a package that gets a new dependent.
func (c *Controller) setOrDelete(ctx context.Context, other *packagesv1.Package, left []string) error {
	if len(left) > 0 {
		return c.setDependents(ctx, other, left)
	}
	err := c.Client.Delete(ctx, other.DeepCopy(), client.Preconditions{UID: &other.UID, ResourceVersion: &other.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting unneeded dependency %q: %w", other.Name, err)
	}
	return nil
}

func (c *Controller) setDependents(ctx context.Context, other *packagesv1.Package, names []string) error {
	slices.Sort(names)
	after := other.DeepCopy()
	after.Annotations[packagesv1.DependentsAnnotation] = strings.Join(names, ",")
	err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(other, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the dependents of Package %q: %w", other.Name, err)
	}
	return nil
}

// releaseDependencies removes a deleted Package from the dependents of all packages.
func (c *Controller) releaseDependencies(ctx context.Context, s *scope) error {
	list := &packagesv1.PackageList{}
	if err := c.Client.List(ctx, list, client.InNamespace(s.pack.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing packages of namespace %q: %w", s.pack.Namespace, err)
	}
	all := make([]*packagesv1.Package, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return c.releaseUnneeded(ctx, s, nil, all)
}
