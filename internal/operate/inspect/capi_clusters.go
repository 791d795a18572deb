package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/operate/kubeconfig"
)

// CAPICluster summarizes a Cluster of Cluster API. Fleets may contain some that no Cluster of
// Drover describes.
type CAPICluster struct {
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"`
	Phase      string             `json:"phase"`
	Available  string             `json:"available"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// waitingOrder lists the conditions of a cluster in the order in which they become true, so that
// the first unmet one is what the others wait for.
var waitingOrder = []string{
	clusterv1.ClusterTopologyReconciledCondition,
	clusterv1.ClusterInfrastructureReadyCondition,
	clusterv1.ClusterControlPlaneInitializedCondition,
	clusterv1.ClusterControlPlaneAvailableCondition,
	clusterv1.ClusterWorkersAvailableCondition,
	clusterv1.ClusterRemoteConnectionProbeCondition,
	clusterv1.ClusterAvailableCondition,
}

// CAPIClusters lists the clusters of all namespaces, sorted by namespace and name.
func (p *Plane) CAPIClusters(ctx context.Context) ([]CAPICluster, error) {
	var list clusterv1.ClusterList
	if err := p.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]CAPICluster, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, summarizeCAPI(&list.Items[i]))
	}
	slices.SortFunc(out, func(a, b CAPICluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// ConnectFile returns a connection to the management plane that a kubeconfig file points to. It
// sends no request.
func ConnectFile(file string) (*Plane, error) {
	config, err := kubeconfig.Connect(file)
	if err != nil {
		return nil, err
	}
	return Connect(config)
}

// FindCAPI returns the Cluster API cluster of a name, in any namespace if namespace is empty.
func (p *Plane) FindCAPI(ctx context.Context, namespace, name string) (*CAPICluster, error) {
	all, err := p.CAPIClusters(ctx)
	if err != nil {
		return nil, err
	}
	return find(all, query{kind: "cluster", namespace: namespace, name: name}, (*CAPICluster).Key)
}

func summarizeCAPI(c *clusterv1.Cluster) CAPICluster {
	out := CAPICluster{Namespace: c.Namespace, Name: c.Name, Phase: c.Status.Phase, Available: string(metav1.ConditionUnknown), Conditions: c.Status.Conditions}
	if a := meta.FindStatusCondition(out.Conditions, clusterv1.ClusterAvailableCondition); a != nil {
		out.Available = string(a.Status)
	}
	return out
}

// Key is the namespace and the name.
func (c *CAPICluster) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// Waiting returns the first condition that is not met, with its message. It is empty if all
// conditions are met or none is known.
func (c *CAPICluster) Waiting() string {
	for _, kind := range waitingOrder {
		if x := meta.FindStatusCondition(c.Conditions, kind); x != nil && x.Status != metav1.ConditionTrue {
			return x.Type + ": " + cmp.Or(x.Message, x.Reason)
		}
	}
	return ""
}
