// Package inspect is what people see of clusters, with the rights of the person who looks: a list, the tree of objects that a cluster consists
// of, why it is not ready, and what happened when. It changes nothing. Start with Connect.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// namesShown is how many clusters an error names.
const namesShown = 10

// Plane is a management plane.
type Plane struct {
	// Client speaks with the rights of the person.
	Client client.WithWatch
	Host   string
	// Own is the namespace that the person's kubeconfig names, which is looked into where all may not be.
	Own string
}

// Scheme has all kinds that a cluster is made of.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), anywherev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme),
		bootstrapv1.AddToScheme(scheme), infrav1.AddToScheme(scheme), addonsv1.AddToScheme(scheme),
	); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	return scheme, nil
}

// Connect prepares to talk to a management plane.
func Connect(config *rest.Config) (*Plane, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // a person waits
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return &Plane{Client: c, Host: config.Host}, nil
}

// Clusters are all that there are, or those of one namespace, sorted.
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

// explain says what an error means to somebody who looks for clusters.
func (p *Plane) explain(doing string, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s: %s has none of Drover's kinds: is it a management plane? (%w)", doing, p.Host, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: name a namespace that you may look into with --namespace", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// NotFoundError means that there is no cluster of that name.
type NotFoundError struct {
	Namespace, Name string
	// Others are what there is instead.
	Others []string
}

func (e *NotFoundError) Error() string {
	where := ""
	if e.Namespace != "" {
		where = fmt.Sprintf(" in namespace %q", e.Namespace)
	}
	if len(e.Others) == 0 {
		return fmt.Sprintf("there is no cluster %q%s, nor any other", e.Name, where)
	}
	return fmt.Sprintf("there is no cluster %q%s; there are %s", e.Name, where, strings.Join(e.Others, ", "))
}

// Find returns the cluster of that name, in one namespace or, if that is empty, wherever it is.
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
	none := &NotFoundError{Namespace: namespace, Name: name}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		if len(none.Others) < namesShown {
			none.Others = append(none.Others, all[i].Namespace+"/"+all[i].Name)
		}
	}
	if more := len(all) - namesShown; more > 0 {
		none.Others = append(none.Others, fmt.Sprintf("%d more", more))
	}
	return nil, none
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
