// Package view reads and changes add-ons on behalf of a user: their status, what a change would do,
// and their revisions.
//
// It reads a management plane and its workload clusters with the privileges of the caller. It never
// reconciles: it writes only what a user could write with kubectl or with the package tool. Start
// with Connect.
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

// Plane is a connection to a management plane.
type Plane struct{ client ctrlclient.WithWatch }

// Connect connects to a management plane.
func Connect(config *rest.Config) (*Plane, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), addonsv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // a user is waiting
	c, err := ctrlclient.NewWithWatch(config, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return &Plane{client: c}, nil
}

// Charts lists the HelmChartProxies of a namespace, or of all namespaces if it is empty, sorted by
// name.
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

// Find returns the HelmChartProxy with a name. It searches all namespaces if namespace is empty.
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
		return nil, fmt.Errorf("found %d add-ons named %q; select one with --namespace", len(found), name)
	case len(others) == 0:
		return nil, fmt.Errorf("add-on %q not found; no add-ons exist", name)
	}
	return nil, fmt.Errorf("add-on %q not found; existing add-ons: %s", name, firstN(others))
}

// firstN names the first few add-ons and counts the others.
func firstN(names []string) string {
	if len(names) <= namesShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), len(names)-namesShown)
}

// GetRESTConfig returns the kubeconfig that Cluster API keeps for a cluster.
func (p *Plane) GetRESTConfig(ctx context.Context, cluster ctrlclient.ObjectKey) (*rest.Config, error) {
	kubeconfig := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.Kubeconfig)}
	if err := p.client.Get(ctx, key, kubeconfig); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q has no kubeconfig: Secret %q not found", cluster.Name, key)
	} else if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %q: %w", cluster.Name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Data[secret.KubeconfigDataName])
	if err != nil {
		return nil, fmt.Errorf("parsing the kubeconfig of cluster %q: invalid kubeconfig", cluster.Name)
	}
	return config, nil
}
