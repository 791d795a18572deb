package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// AddOns lists the HelmChartProxies of a namespace, or of all namespaces if it is empty, sorted by
// namespace and name.
func (p *Plane) AddOns(ctx context.Context, namespace string) ([]addonsv1.HelmChartProxy, error) {
	list := &addonsv1.HelmChartProxyList{}
	if err := p.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing add-ons: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b addonsv1.HelmChartProxy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// FindAddOn returns the HelmChartProxy of a name, in any namespace if namespace is empty. It
// returns a NotFoundError if there is none.
func (p *Plane) FindAddOn(ctx context.Context, namespace, name string) (*addonsv1.HelmChartProxy, error) {
	all, err := p.AddOns(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return find(all, query{kind: "add-on", namespace: namespace, name: name}, func(a *addonsv1.HelmChartProxy) client.ObjectKey {
		return client.ObjectKeyFromObject(a)
	})
}

// AddOnRelease returns the HelmReleaseProxy of an add-on on a cluster.
func (p *Plane) AddOnRelease(ctx context.Context, hcp *addonsv1.HelmChartProxy, cluster string) (*addonsv1.HelmReleaseProxy, error) {
	all, err := index.Releases{Reader: p.Client}.OfChart(ctx, client.ObjectKeyFromObject(hcp))
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Spec.ClusterRef.Name == cluster {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("add-on %q has no release on cluster %q\nTry: drover addon status %s", hcp.Name, cluster, hcp.Name)
}

// GetRESTConfig returns the configuration of a client of a workload cluster, from the kubeconfig
// that Cluster API stores.
func (p *Plane) GetRESTConfig(ctx context.Context, cluster client.ObjectKey) (*rest.Config, error) {
	data, err := p.kubeconfigIn(ctx, cluster.Namespace, cluster.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q has no kubeconfig: %w", cluster.Name, err)
	}
	if err != nil {
		return nil, err
	}
	config, err := restConfig(data)
	if err != nil {
		return nil, fmt.Errorf("parsing the kubeconfig of cluster %q: %w", cluster.Name, err)
	}
	return config, nil
}
