// Package target says which cluster a Package is for, and under which name it goes there. It guesses nothing: what can't be told is an error
// that says why.
//
// All of it is pure functions. Start with Of, then Cluster.
package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Target is a release on a cluster.
type Target struct {
	// Cluster has a PackageBundleController of the same name.
	Cluster string
	Release string
}

// ErrNamespace says that packages don't belong in a namespace. The text is what people's scripts look for.
var ErrNamespace = errors.New("Packages namespaces must start with: " + packagesv1.Namespace) //nolint:staticcheck // told as it is

// UnknownError says that nothing has the name of the target.
type UnknownError struct{ Message string }

func (e *UnknownError) Error() string { return e.Message }

// AmbiguousError says that several Clusters have the name.
type AmbiguousError struct {
	Cluster    string
	Namespaces []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("there is a Cluster %q in namespaces %s: PackageBundleController %q must name one in clusterNamespace",
		e.Cluster, few(e.Namespaces), e.Cluster)
}

// Of is what a Package is for, if exists knows the names of PackageBundleControllers. In a namespace of a cluster's own that is no question.
// In the one for all, the name of the cluster comes first in the name of the Package, and the longest that exists counts.
func Of(key types.NamespacedName, exists func(cluster string) bool) (Target, error) {
	candidates := Candidates(key)
	if len(candidates) == 0 && key.Namespace != packagesv1.Namespace {
		return Target{}, ErrNamespace
	}
	for _, cluster := range candidates {
		if exists(cluster) {
			return on(key, cluster), nil
		}
	}
	if key.Namespace != packagesv1.Namespace {
		return Target{}, &UnknownError{fmt.Sprintf("there is no PackageBundleController %q in namespace %q", candidates[0], packagesv1.Namespace)}
	}
	return Target{}, &UnknownError{fmt.Sprintf(
		"no PackageBundleController has a name that %q begins with; a package in namespace %q is called <cluster>-<release>", key.Name, packagesv1.Namespace)}
}

// Candidates are the clusters that a Package may be for, the longest name first. There are none in namespaces that packages don't belong in.
func Candidates(key types.NamespacedName) []string {
	if cluster, ok := strings.CutPrefix(key.Namespace, packagesv1.NamespacePrefix); ok && cluster != "" {
		return []string{cluster}
	}
	if key.Namespace != packagesv1.Namespace {
		return nil
	}
	var names []string
	for i := len(key.Name) - 2; i > 0; i-- { // neither the cluster nor the release has an empty name
		if key.Name[i] == '-' {
			names = append(names, key.Name[:i])
		}
	}
	return names
}

// Name is what a Package for a release on a cluster is called in a namespace.
func Name(namespace, cluster, release string) string {
	if namespace == packagesv1.Namespace {
		return cluster + "-" + release
	}
	return release
}

func on(key types.NamespacedName, cluster string) Target {
	if key.Namespace == packagesv1.Namespace {
		return Target{Cluster: cluster, Release: strings.TrimPrefix(key.Name, cluster+"-")}
	}
	return Target{Cluster: cluster, Release: key.Name}
}

// Still says that a Package can be for a target that was found before. A PackageBundleController with a longer name that came later moves
// nothing that is installed.
func Still(key types.NamespacedName, t Target) bool {
	return slices.Contains(Candidates(key), t.Cluster) && on(key, t.Cluster) == t
}

// Cluster chooses among all Clusters of a name: the one in the namespace that the PackageBundleController says, else the one where kubeconfigs
// have always been, else the only one.
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
		return types.NamespacedName{}, &UnknownError{fmt.Sprintf("there is no Cluster %q in namespace %q, which PackageBundleController %q names", name, wanted, name)}
	case slices.Contains(namespaces, packagesv1.KubeconfigNamespace):
		return types.NamespacedName{Namespace: packagesv1.KubeconfigNamespace, Name: name}, nil
	case len(namespaces) == 1:
		return types.NamespacedName{Namespace: namespaces[0], Name: name}, nil
	case len(namespaces) == 0:
		return types.NamespacedName{}, &UnknownError{fmt.Sprintf("there is no Cluster %q", name)}
	default:
		return types.NamespacedName{}, &AmbiguousError{Cluster: name, Namespaces: namespaces}
	}
}

// few names the first three.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
