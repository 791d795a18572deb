package bootstrap

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// gatherConfigs reads Clusters of Drover's own group, and what they reference. A plane without that
// group has none.
func (s *selection) gatherConfigs(ctx context.Context, c readers) error {
	for _, side := range []client.Reader{c.source, c.destination} {
		list, err := listClusters(ctx, side)
		if err != nil {
			return err
		}
		for _, u := range list.Items {
			into := s.others
			switch {
			case u.GetName() == s.cluster.Name:
				into = s.mine
			case side == c.destination: // What others use there need not stay here.
				continue
			}
			spec, _, _ := unstructured.NestedMap(u.Object, "spec")
			collectRefs(spec, func(kind, name string) { into[configKey(kind, u.GetNamespace(), name)] = true })
		}
	}
	return nil
}

// listClusters lists the Clusters of Drover's own group.
func listClusters(ctx context.Context, c client.Reader) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(anywherev1.GroupVersion.WithKind("ClusterList"))
	err := c.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return list, nil
	}
	return list, err
}

func configKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// collectRefs finds references anywhere in a spec: values with both a kind and a name.
func collectRefs(value any, found func(kind, name string)) {
	switch v := value.(type) {
	case map[string]any:
		kind, _ := v["kind"].(string)
		name, _ := v["name"].(string)
		if kind != "" && name != "" {
			found(kind, name)
		}
		for _, child := range v {
			collectRefs(child, found)
		}
	case []any:
		for _, child := range v {
			collectRefs(child, found)
		}
	}
}

// ofConfigs decides about Clusters of Drover's own group and what they reference, which may be
// shared.
func (s *selection) ofConfigs(u *unstructured.Unstructured) disposition {
	if u.GetKind() == "Cluster" {
		return either(u.GetName() == s.cluster.Name, moved)
	}
	key := configKey(u.GetKind(), u.GetNamespace(), u.GetName())
	switch {
	case s.mine[key] && s.others[key]:
		return copied
	case s.mine[key]:
		return moved
	}
	return ignored
}
