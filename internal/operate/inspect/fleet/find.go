package fleet

import (
	"context"
	"fmt"
	"strings"
)

// namesShown is how many clusters an error names.
const namesShown = 10

// Find returns the cluster of that name, in one namespace or, if that is
// empty, wherever it is.
func (f *Fleet) Find(ctx context.Context, namespace, name string) (Cluster, error) {
	all, err := f.List(ctx)
	if err != nil {
		return Cluster{}, err
	}
	return find(all, namespace, name)
}

func find(all []Cluster, namespace, name string) (Cluster, error) {
	var found []Cluster
	for _, c := range all {
		if c.Name == name && (namespace == "" || c.Namespace == namespace) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Cluster{}, fmt.Errorf("%d clusters are called %q (%s): choose one with --namespace", len(found), name, keys(found))
	case len(all) == 0:
		return Cluster{}, fmt.Errorf("there is no cluster %q, nor any other", name)
	case namespace != "":
		return Cluster{}, fmt.Errorf("there is no cluster %q in namespace %q; there are %s", name, namespace, keys(all))
	default:
		return Cluster{}, fmt.Errorf("there is no cluster %q; there are %s", name, keys(all))
	}
}

func keys(clusters []Cluster) string {
	var out []string
	for _, c := range clusters[:min(len(clusters), namesShown)] {
		out = append(out, c.Key())
	}
	if more := len(clusters) - namesShown; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}
