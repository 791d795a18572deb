// Package clustertest observes real workload clusters from outside, for tests and benchmarks: their
// status on the management plane, and their own API.
//
// It never waits and never fails a test: missing objects are returned as empty. Start with Cluster.
package clustertest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Render renders a template as clusterctl does.
func Render(template string, variables map[string]string) ([]byte, error) {
	raw, err := os.ReadFile(template)
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	return yamlprocessor.NewSimpleProcessor().Process(raw, func(name string) (string, error) { return variables[name], nil })
}

// NewClient returns a client that knows the kinds of Cluster API.
func NewClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme, addonsv1.AddToScheme, infrav1.AddToScheme, packagesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// Cluster is a workload cluster in the default namespace.
type Cluster struct {
	Client client.Client
	Name   string

	direct kubernetes.Interface
}

// Object returns the Cluster, or an empty one if it can't be read.
func (c *Cluster) Object(ctx context.Context) *clusterv1.Cluster {
	out := &clusterv1.Cluster{}
	_ = c.Client.Get(ctx, c.key(""), out)
	return out
}

// Is reports whether a condition of the Cluster is true.
func (c *Cluster) Is(ctx context.Context, condition string) bool {
	return conditions.IsTrue(c.Object(ctx), condition)
}

// Available reports whether the cluster is completely available.
func (c *Cluster) Available(ctx context.Context) bool {
	nodes := c.Nodes(ctx)
	return c.Is(ctx, clusterv1.ClusterAvailableCondition) && len(nodes) > 0 && !slices.ContainsFunc(nodes, NotReady)
}

// Machines returns the machines of the cluster in order of creation.
func (c *Cluster) Machines(ctx context.Context) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	_ = c.Client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name})
	slices.SortStableFunc(list.Items, func(a, b clusterv1.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items
}

// Nodes returns the nodes of the cluster, or none while it does not respond.
func (c *Cluster) Nodes(ctx context.Context) []corev1.Node {
	direct, err := c.Direct(ctx)
	if err != nil {
		return nil
	}
	list, err := direct.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// NotReady reports whether a node is not ready.
func NotReady(n corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Direct returns a client for the workload cluster itself.
func (c *Cluster) Direct(ctx context.Context) (kubernetes.Interface, error) {
	if c.direct != nil {
		return c.direct, nil
	}
	secret := &corev1.Secret{}
	if err := c.Client.Get(ctx, c.key("-kubeconfig"), secret); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		return nil, err
	}
	cfg.Timeout = 10 * time.Second
	c.direct, err = kubernetes.NewForConfig(cfg)
	return c.direct, err
}

func (c *Cluster) key(suffix string) client.ObjectKey {
	return client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: c.Name + suffix}
}
