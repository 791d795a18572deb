// Package fleet reads the clusters of a management plane for people to look
// at. It never changes anything.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is one cluster and how it is doing.
type Cluster struct {
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"`
	Phase      string             `json:"phase"`
	Available  string             `json:"available"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// waitingOrder are the conditions of a cluster in the order in which they come
// true, so that the first unmet one is what holds up the others.
var waitingOrder = []string{
	clusterv1.ClusterTopologyReconciledCondition,
	clusterv1.ClusterInfrastructureReadyCondition,
	clusterv1.ClusterControlPlaneInitializedCondition,
	clusterv1.ClusterControlPlaneAvailableCondition,
	clusterv1.ClusterWorkersAvailableCondition,
	clusterv1.ClusterRemoteConnectionProbeCondition,
	clusterv1.ClusterAvailableCondition,
}

// Fleet is the clusters of one management plane.
type Fleet struct {
	client client.WithWatch
}

// Connect prepares to talk to a management plane.
func Connect(cfg *rest.Config) (*Fleet, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return &Fleet{client: c}, nil
}

// List returns the clusters in all namespaces, sorted.
func List(ctx context.Context, kubeconfig string) ([]Cluster, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", kubeconfig, err)
	}
	f, err := Connect(cfg)
	if err != nil {
		return nil, err
	}
	return f.List(ctx)
}

// List returns the clusters in all namespaces, sorted.
func (f *Fleet) List(ctx context.Context) ([]Cluster, error) {
	var list clusterv1.ClusterList
	if err := f.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]Cluster, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, summarize(&list.Items[i]))
	}
	slices.SortFunc(out, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func summarize(c *clusterv1.Cluster) Cluster {
	out := Cluster{Namespace: c.Namespace, Name: c.Name, Phase: c.Status.Phase, Available: string(metav1.ConditionUnknown), Conditions: c.Status.Conditions}
	if a := out.condition(clusterv1.ClusterAvailableCondition); a != nil {
		out.Available = string(a.Status)
	}
	return out
}

func (c Cluster) condition(kind string) *metav1.Condition {
	i := slices.IndexFunc(c.Conditions, func(x metav1.Condition) bool { return x.Type == kind })
	if i < 0 {
		return nil
	}
	return &c.Conditions[i]
}

// Key is how people write the cluster's name in full.
func (c Cluster) Key() string { return c.Namespace + "/" + c.Name }

// Waiting names the first condition that is not met and why, or nothing.
func (c Cluster) Waiting() string {
	for _, kind := range waitingOrder {
		if x := c.condition(kind); x != nil && x.Status != metav1.ConditionTrue {
			return x.Type + ": " + cmp.Or(x.Message, x.Reason)
		}
	}
	return ""
}
