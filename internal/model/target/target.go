// Package target determines the cluster and the release name of a Package. An unclear target is an
// error with the reason, never a guess.
//
// It contains only pure functions. Start with Of, then Cluster.
package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
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

// AmbiguousError is returned if several Clusters have the name.
type AmbiguousError struct {
	Cluster    string
	Namespaces []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("Cluster %q exists in namespaces %s: set clusterNamespace in PackageBundleController %q",
		e.Cluster, text.FirstN(e.Namespaces, 3), e.Cluster)
}

// Of returns the target of a Package; exists reports whether a PackageBundleController exists. In
// the namespace of a cluster, the target is that cluster. In the shared namespace, the name of the
// Package starts with the name of the cluster, and the longest existing name wins.
func Of(key types.NamespacedName, exists func(cluster string) bool) (Target, error) {
	candidates := Candidates(key)
	if len(candidates) == 0 && key.Namespace != packagesv1.Namespace {
		return Target{}, ErrNamespace
	}
	for _, cluster := range candidates {
		if exists(cluster) {
			return forCluster(key, cluster), nil
		}
	}
	if key.Namespace != packagesv1.Namespace {
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

// Still reports whether a Package can keep its target, so that a PackageBundleController with a
// longer name doesn't move an installed package.
func Still(key types.NamespacedName, t Target) bool {
	return slices.Contains(Candidates(key), t.Cluster) && forCluster(key, t.Cluster) == t
}

// Cluster selects one of all Clusters of a name: the one in the namespace that the
// PackageBundleController names, else the one in KubeconfigNamespace, else the only one.
func Cluster(name, wanted string, found []types.NamespacedName) (types.NamespacedName, error) {
	var namespaces []string
	for _, key := range found {
		if key.Name == name {
			namespaces = append(namespaces, key.Namespace)
		}
	}
	slices.Sort(namespaces)
	switch {
	case wanted != "" && slices.Contains(namespaces, wanted):
		return types.NamespacedName{Namespace: wanted, Name: name}, nil
	case wanted != "":
		return types.NamespacedName{}, &UnknownError{fmt.Sprintf("Cluster %q not found in namespace %q, which PackageBundleController %q names", name, wanted, name)}
	case slices.Contains(namespaces, packagesv1.KubeconfigNamespace):
		return types.NamespacedName{Namespace: packagesv1.KubeconfigNamespace, Name: name}, nil
	case len(namespaces) == 1:
		return types.NamespacedName{Namespace: namespaces[0], Name: name}, nil
	case len(namespaces) == 0:
		return types.NamespacedName{}, &UnknownError{fmt.Sprintf("Cluster %q not found", name)}
	default:
		return types.NamespacedName{}, &AmbiguousError{Cluster: name, Namespaces: namespaces}
	}
}

// Tenant returns the namespace of the owner of a Cluster. Clusters that Drover creates from specs
// are in a namespace where nobody else creates any, and a label names the namespace of the spec.
// Other Clusters belong to their own namespace, whatever their labels say.
func Tenant(cluster *clusterv1.Cluster) string {
	if owner := cluster.Labels[anywherev1.ClusterNamespaceLabel]; owner != "" && cluster.Namespace == anywherev1.SystemNamespace {
		return owner
	}
	return cluster.Namespace
}
