package clustertest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// Register creates a Cluster for an unmanaged API server, so that add-ons and packages can be
// installed on it. It has no machines and an externally managed infrastructure.
func Register(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, config *rest.Config) error {
	u, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		return fmt.Errorf("reading the port of %q: %w", config.Host, err)
	}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: u.Hostname(), Port: int32(port)}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: cluster.Name}
	if err := c.Create(ctx, cluster); err != nil {
		return err
	}
	if err := external(ctx, c, cluster); err != nil {
		return err
	}
	text, err := clientcmd.Write(*kubetest.AsKubeconfig(config))
	if err != nil {
		return err
	}
	access := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.Kubeconfig), Labels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{secret.KubeconfigDataName: text},
	}
	if err := c.Create(ctx, access); err != nil {
		return err
	}
	return Announce(ctx, c, cluster)
}

// Announce marks a registered Cluster as ready, since no controller does. It must be repeated after
// a move.
func Announce(ctx context.Context, c client.Client, cluster *clusterv1.Cluster) error {
	infrastructure := &infrav1.PacketCluster{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), infrastructure); err != nil {
		return err
	}
	was := infrastructure.DeepCopy()
	infrastructure.Status.Ready = true
	infrastructure.Status.Initialization.Provisioned = ptr.To(true)
	if err := c.Status().Patch(ctx, infrastructure, client.MergeFrom(was)); err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	conditions.Set(cluster, metav1.Condition{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ClusterControlPlaneInitializedReason,
	})
	return c.Status().Patch(ctx, cluster, client.MergeFrom(before))
}

// external makes an infrastructure that is there already.
func external(ctx context.Context, c client.Client, cluster *clusterv1.Cluster) error {
	infrastructure := &infrav1.PacketCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: cluster.Name, Annotations: map[string]string{clusterv1.ManagedByAnnotation: "others"},
		},
		Spec: infrav1.PacketClusterSpec{
			ProjectID: "11111111-2222-3333-4444-555555555555", Metro: "da",
			ControlPlaneEndpoint: infrav1.APIEndpoint{Host: cluster.Spec.ControlPlaneEndpoint.Host, Port: cluster.Spec.ControlPlaneEndpoint.Port},
		},
	}
	return c.Create(ctx, infrastructure)
}
