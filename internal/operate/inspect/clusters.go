package inspect

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Clusters lists the Clusters of a namespace, or of all namespaces if it is empty, sorted by
// namespace and name.
func (p *Plane) Clusters(ctx context.Context, namespace string) ([]anywherev1.Cluster, error) {
	list := &anywherev1.ClusterList{}
	err := p.Client.List(ctx, list, client.InNamespace(namespace))
	if apierrors.IsForbidden(err) && namespace == "" && p.Own != "" {
		err = p.Client.List(ctx, list, client.InNamespace(p.Own))
	}
	if err != nil {
		return nil, p.explain("listing clusters", err)
	}
	slices.SortFunc(list.Items, func(a, b anywherev1.Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// Find returns the Cluster of a name, in any namespace if namespace is empty. It returns a
// NotFoundError if there is none.
func (p *Plane) Find(ctx context.Context, namespace, name string) (*anywherev1.Cluster, error) {
	if namespace != "" {
		found := &anywherev1.Cluster{}
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
		if err == nil || !apierrors.IsNotFound(err) {
			return found, wrap(err, "reading cluster %q", name)
		}
	}
	all, err := p.Clusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return find(all, query{kind: "cluster", namespace: namespace, name: name}, func(c *anywherev1.Cluster) client.ObjectKey {
		return client.ObjectKeyFromObject(c)
	})
}
