// Package target determines the cluster and the release name of a Package. An unclear target is an
// error with the reason, never a guess.
//
// It contains only pure functions. Start with Of, then Cluster.
package target

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Target is a release on a cluster.
type Target struct {
	// Cluster is the name of the cluster and of its PackageBundleController.
	Cluster string
	Release string
}

// ErrNamespace is returned for Packages in other namespaces.
var ErrNamespace = errors.New("Packages namespaces must start with: " + packagesv1.Namespace) //nolint:staticcheck // existing scripts match this text

// UnknownError is returned if the target doesn't exist.
type UnknownError struct{ Message string }

func (e *UnknownError) Error() string { return e.Message }

// AmbiguousError is returned if several clusters could be meant. It never says where they are,
// which is not for the users of one of them.
type AmbiguousError struct{ Message string }

func (e *AmbiguousError) Error() string { return e.Message }

// DeniedError is returned if the target exists, but doesn't accept the package.
type DeniedError struct{ Message string }

func (e *DeniedError) Error() string { return e.Message }

// IsUnclear reports whether an error of this package says why there is no target.
func IsUnclear(err error) bool {
	return errors.Is(err, ErrNamespace) || errors.As(err, new(*UnknownError)) || errors.As(err, new(*AmbiguousError)) || errors.As(err, new(*DeniedError))
}

// Of returns the target of a Package; find returns the tenant of a PackageBundleController, as in
// package owner, and whether it exists. In the namespace of a cluster, the target is that cluster.
// In the shared namespace, the name of the Package starts with the name of the cluster. The longest
// existing name wins among clusters of one tenant; nobody captures packages of another tenant by a
// longer name.
func Of(key types.NamespacedName, find func(cluster string) (tenant string, exists bool)) (Target, error) {
	candidates := Candidates(key)
	if len(candidates) == 0 && key.Namespace != packagesv1.Namespace {
		return Target{}, ErrNamespace
	}
	first, tenants := "", map[string]bool{}
	for _, cluster := range candidates {
		if tenant, exists := find(cluster); exists {
			first = cmp.Or(first, cluster)
			tenants[tenant] = true
		}
	}
	switch {
	case len(tenants) > 1:
		return Target{}, &AmbiguousError{fmt.Sprintf("the name %q fits several clusters: create the package in namespace %s<cluster>", key.Name, packagesv1.NamespacePrefix)}
	case first != "":
		return forCluster(key, first), nil
	case key.Namespace != packagesv1.Namespace:
		return Target{}, &UnknownError{fmt.Sprintf("PackageBundleController %q not found in namespace %q", candidates[0], packagesv1.Namespace)}
	}
	return Target{}, &UnknownError{fmt.Sprintf(
		"PackageBundleController for package %q not found: the name of a package in namespace %q must be <cluster>-<release>", key.Name, packagesv1.Namespace)}
}

// Candidates returns the possible clusters of a Package, longest name first. It returns none for
// Packages in other namespaces.
func Candidates(key types.NamespacedName) []string {
	if cluster, ok := strings.CutPrefix(key.Namespace, packagesv1.NamespacePrefix); ok && cluster != "" {
		return []string{cluster}
	}
	if key.Namespace != packagesv1.Namespace {
		return nil
	}
	var names []string
	for i := len(key.Name) - 2; i > 0; i-- { // cluster and release are not empty
		if key.Name[i] == '-' {
			names = append(names, key.Name[:i])
		}
	}
	return names
}

// Fits reports whether a Package is, or could be, for a cluster of the name. A known target doesn't
// change.
func Fits(p *packagesv1.Package, cluster string) bool {
	if t := p.Status.Target; t != nil {
		return t.Cluster == cluster
	}
	return slices.Contains(Candidates(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}), cluster)
}

// Name returns the name of the Package for a release on a cluster.
func Name(namespace, cluster, release string) string {
	if namespace == packagesv1.Namespace {
		return cluster + "-" + release
	}
	return release
}

func forCluster(key types.NamespacedName, cluster string) Target {
	if key.Namespace == packagesv1.Namespace {
		return Target{Cluster: cluster, Release: strings.TrimPrefix(key.Name, cluster+"-")}
	}
	return Target{Cluster: cluster, Release: key.Name}
}

// PackageOf returns the reference to the Package that controls an object, or nil. It is not proof
// that the Package wrote the object: whoever creates an object writes its owners.
func PackageOf(o metav1.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(o)
	if ref == nil || ref.Kind != "Package" || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group != packagesv1.GroupVersion.Group {
		return nil
	}
	return ref
}

// Still reports whether a Package can keep its target, so that a PackageBundleController with a
// longer name doesn't move an installed package.
func Still(key types.NamespacedName, t Target) bool {
	return slices.Contains(Candidates(key), t.Cluster) && forCluster(key, t.Cluster) == t
}
