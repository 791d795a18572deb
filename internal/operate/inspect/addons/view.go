// Package view is what people see of add-ons, and what they can ask for: how they are doing, what a change would do, what was there before.
//
// It reads a management plane and the clusters that this one knows, with the rights of the person who asks. It never reconciles: what it
// writes is what a person could write with kubectl or with the package tool's own command. Start with Connect.
package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Plane is a management plane.
type Plane struct{ client ctrlclient.WithWatch }

// Connect prepares to talk to a management plane.
func Connect(config *rest.Config) (*Plane, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), addonsv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // a person waits, and asks for no more than one fleet has
	c, err := ctrlclient.NewWithWatch(config, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return &Plane{client: c}, nil
}

// Charts are the HelmChartProxies of a namespace, or of all if it is empty, sorted.
func (p *Plane) Charts(ctx context.Context, namespace string) ([]addonsv1.HelmChartProxy, error) {
	list := &addonsv1.HelmChartProxyList{}
	if err := p.client.List(ctx, list, ctrlclient.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing add-ons: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b addonsv1.HelmChartProxy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// namesShown is how many add-ons an error names.
const namesShown = 10

// Find returns the HelmChartProxy of that name, in one namespace or, if that is empty, wherever it is.
func (p *Plane) Find(ctx context.Context, namespace, name string) (*addonsv1.HelmChartProxy, error) {
	all, err := p.Charts(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var found []*addonsv1.HelmChartProxy
	var others []string
	for i := range all {
		others = append(others, all[i].Namespace+"/"+all[i].Name)
		if all[i].Name == name {
			found = append(found, &all[i])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%d add-ons are called %q: choose one with --namespace", len(found), name)
	case len(others) == 0:
		return nil, fmt.Errorf("there is no add-on %q, nor any other: apply a HelmChartProxy first", name)
	case len(others) > namesShown:
		others = append(others[:namesShown], fmt.Sprintf("%d more", len(others)-namesShown))
	}
	return nil, fmt.Errorf("there is no add-on %q; there are %s", name, strings.Join(others, ", "))
}

// GetRESTConfig is how to reach a cluster, by the kubeconfig that Cluster API keeps for it.
func (p *Plane) GetRESTConfig(ctx context.Context, cluster ctrlclient.ObjectKey) (*rest.Config, error) {
	kept := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.Kubeconfig)}
	if err := p.client.Get(ctx, key, kept); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q has no kubeconfig yet: Secret %q does not exist", cluster.Name, key)
	} else if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %q: %w", cluster.Name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kept.Data[secret.KubeconfigDataName])
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig of cluster %q can't be read", cluster.Name)
	}
	return config, nil
}
