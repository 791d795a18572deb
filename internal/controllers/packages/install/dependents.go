package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// dependents are the packages that one was made for. A package that a user made has none, whoever depends on it.
func dependents(p *packagesv1.Package) []string {
	text, ok := p.Annotations[packagesv1.DependentsAnnotation]
	if !ok || text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// join adds this Package to those that another was made for.
func (c *Controller) join(ctx context.Context, s *scope, other *packagesv1.Package) error {
	names := dependents(other)
	if len(names) == 0 || slices.Contains(names, s.pack.Name) || !other.DeletionTimestamp.IsZero() {
		return nil
	}
	return c.setDependents(ctx, other, append(names, s.pack.Name))
}

// letGo lets go of packages that were made for this one, but for those that are still needed.
func (c *Controller) letGo(ctx context.Context, s *scope, needed []string, siblings []*packagesv1.Package) error {
	for _, other := range siblings {
		names := dependents(other)
		i := slices.Index(names, s.pack.Name)
		if i < 0 || !other.DeletionTimestamp.IsZero() || slices.ContainsFunc(needed, func(n string) bool { return strings.EqualFold(n, other.Spec.PackageName) }) {
			continue
		}
		if err := c.leave(ctx, other, slices.Delete(slices.Clone(names), i, i+1)); err != nil {
			return err
		}
	}
	return nil
}

// leave removes a package with the last one that it was made for. It stays if another one comes to need it meanwhile.
func (c *Controller) leave(ctx context.Context, other *packagesv1.Package, left []string) error {
	if len(left) > 0 {
		return c.setDependents(ctx, other, left)
	}
	err := c.Client.Delete(ctx, other.DeepCopy(), client.Preconditions{UID: &other.UID, ResourceVersion: &other.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Package %q, which nobody depends on any more: %w", other.Name, err)
	}
	return nil
}

func (c *Controller) setDependents(ctx context.Context, other *packagesv1.Package, names []string) error {
	slices.Sort(names)
	after := other.DeepCopy()
	after.Annotations[packagesv1.DependentsAnnotation] = strings.Join(names, ",")
	err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(other, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting who depends on Package %q: %w", other.Name, err)
	}
	if err == nil {
		c.packages.Note(after)
	}
	return nil
}

// letGoOfDependencies is for a Package that goes.
func (c *Controller) letGoOfDependencies(ctx context.Context, s *scope) (bool, error) {
	list := &packagesv1.PackageList{}
	if err := c.Client.List(ctx, list, client.InNamespace(s.pack.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing packages of namespace %q: %w", s.pack.Namespace, err)
	}
	all := make([]*packagesv1.Package, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	err := c.letGo(ctx, s, nil, all)
	return err == nil, err
}
