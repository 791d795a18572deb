package capi

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// WarmCaches makes the manager's cache fetch what the reconcilers read as soon as it starts.
// Otherwise the caches of a standby replica are empty: its webhooks would stall on the first
// request, and a takeover would start with listing everything.
func WarmCaches(ctx context.Context, mgr ctrl.Manager) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	for _, obj := range []client.Object{
		definition,
		&clusterv1.Cluster{}, &clusterv1.ClusterClass{}, &clusterv1.Machine{}, &clusterv1.MachineSet{},
		&clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}, &clusterv1.MachineHealthCheck{},
		&addonsv1.ClusterResourceSet{}, &addonsv1.ClusterResourceSetBinding{},
		&bootstrapv1.KubeadmConfig{}, &controlplanev1.KubeadmControlPlane{},
	} {
		if _, err := mgr.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("caching %T: %w", obj, err)
		}
	}
	return nil
}
