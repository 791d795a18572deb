package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "drover"

// Packages returns the Packages of a cluster sorted by name, or those of the given names in their
// order.
func (p *Plane) Packages(ctx context.Context, cluster string, names ...string) ([]packagesv1.Package, error) {
	targetOf, err := p.PackageTargets(ctx)
	if err != nil {
		return nil, err
	}
	var all []packagesv1.Package
	for _, namespace := range []string{packagesv1.NamespacePrefix + cluster, packagesv1.Namespace} {
		list := &packagesv1.PackageList{}
		err := p.Client.List(ctx, list, client.InNamespace(namespace))
		if namespace == packagesv1.Namespace && apierrors.IsForbidden(err) {
			continue // It holds Packages of all clusters, and only administrators may read it.
		}
		if err != nil {
			return nil, fmt.Errorf("listing packages in %q: %w", namespace, err)
		}
		for _, one := range list.Items {
			on := targetOf(client.ObjectKeyFromObject(&one))
			if t := one.Status.Target; t != nil {
				on = t.Cluster // a known target doesn't change
			}
			if namespace != packagesv1.Namespace || on == cluster {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b packagesv1.Package) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return selectPackages(all, cluster, names)
}

// PackageTargets returns a function from Packages to their clusters. It returns the empty string
// for a Package without one.
func (p *Plane) PackageTargets(ctx context.Context) (func(client.ObjectKey) string, error) {
	controllers, err := p.BundleControllers(ctx)
	if err != nil {
		return nil, err
	}
	find := func(cluster string) (string, bool) {
		i := slices.IndexFunc(controllers, func(c packagesv1.PackageBundleController) bool { return c.Name == cluster })
		if i < 0 {
			return "", false
		}
		return owner.Users(&controllers[i]), true
	}
	return func(key client.ObjectKey) string {
		found, _ := target.Of(key, find)
		return found.Cluster
	}, nil
}

// selectPackages returns the packages of the given names, or all without names.
func selectPackages(all []packagesv1.Package, cluster string, names []string) ([]packagesv1.Package, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []packagesv1.Package
	var missing []string
	for _, name := range names {
		i := slices.IndexFunc(all, func(one packagesv1.Package) bool { return one.Name == name })
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		out = append(out, all[i])
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("cluster %q has no package %s; list packages with `drover get packages --cluster %s`", cluster, strings.Join(missing, ", "), cluster)
	}
	return out, nil
}

// BundleControllers lists all PackageBundleControllers, sorted by name.
func (p *Plane) BundleControllers(ctx context.Context) ([]packagesv1.PackageBundleController, error) {
	list := &packagesv1.PackageBundleControllerList{}
	if err := p.Client.List(ctx, list, client.InNamespace(packagesv1.Namespace)); err != nil {
		return nil, fmt.Errorf("listing package bundle controllers: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b packagesv1.PackageBundleController) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// BundleController returns the PackageBundleController of a cluster.
func (p *Plane) BundleController(ctx context.Context, cluster string) (*packagesv1.PackageBundleController, error) {
	found := &packagesv1.PackageBundleController{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster}, found)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("packages are not enabled for cluster %q: PackageBundleController %q not found in namespace %q", cluster, cluster, packagesv1.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading PackageBundleController %q: %w", cluster, err)
	}
	return found, nil
}

// BundleUse is a bundle with the clusters that use it.
type BundleUse struct {
	packagesv1.PackageBundle `json:",inline"`

	UsedBy []string `json:"usedBy,omitempty"`
}

// Bundles lists all PackageBundles, newest first.
func (p *Plane) Bundles(ctx context.Context) ([]BundleUse, error) {
	list := &packagesv1.PackageBundleList{}
	if err := p.Client.List(ctx, list, client.InNamespace(packagesv1.Namespace)); err != nil {
		return nil, fmt.Errorf("listing package bundles: %w", err)
	}
	controllers, err := p.BundleControllers(ctx)
	if err != nil {
		return nil, err
	}
	users := map[string][]string{}
	for _, c := range controllers {
		users[c.Spec.ActiveBundle] = append(users[c.Spec.ActiveBundle], c.Name)
	}
	out := make([]BundleUse, 0, len(list.Items))
	for _, b := range list.Items {
		out = append(out, BundleUse{PackageBundle: b, UsedBy: users[b.Name]})
	}
	slices.SortFunc(out, func(a, b BundleUse) int { return newerFirst(a.Name, b.Name) })
	return out, nil
}

// newerFirst orders bundles by version, and invalid names last.
func newerFirst(a, b string) int {
	left, leftErr := bundle.ParseName(a)
	right, rightErr := bundle.ParseName(b)
	switch {
	case leftErr != nil && rightErr != nil:
		return cmp.Compare(a, b)
	case leftErr != nil:
		return 1
	case rightErr != nil:
		return -1
	}
	return right.Compare(left)
}

// ActiveBundle returns the bundle that a cluster uses.
func (p *Plane) ActiveBundle(ctx context.Context, cluster string) (*packagesv1.PackageBundle, error) {
	controller, err := p.BundleController(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if controller.Spec.ActiveBundle == "" {
		return nil, fmt.Errorf("cluster %q has no active bundle yet; see `drover get packagebundlecontrollers`, or activate one with `drover upgrade packages --cluster %s --bundle-version NAME`", cluster, cluster)
	}
	found := &packagesv1.PackageBundle{}
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: controller.Spec.ActiveBundle}, found); err != nil {
		return nil, fmt.Errorf("reading bundle %q, which is active on cluster %q: %w", controller.Spec.ActiveBundle, cluster, err)
	}
	return found, nil
}

// PackageEvents lists the events of a package, oldest first.
func (p *Plane) PackageEvents(ctx context.Context, one *packagesv1.Package) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	if err := p.Client.List(ctx, list, client.InNamespace(one.Namespace), client.MatchingFields{"involvedObject.uid": string(one.UID)}); err != nil {
		return nil, fmt.Errorf("listing events of package %q: %w", one.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return list.Items, nil
}

// PackageTemplate returns a Package that can be applied.
func PackageTemplate(cluster, name, packageName string) *packagesv1.Package {
	return &packagesv1.Package{
		TypeMeta:   metav1.TypeMeta{APIVersion: packagesv1.GroupVersion.String(), Kind: "Package"},
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + cluster, Name: name},
		Spec:       packagesv1.PackageSpec{PackageName: packageName},
	}
}
