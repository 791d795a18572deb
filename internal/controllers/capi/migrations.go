package capi

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
)

// migrations lists every kind whose stored objects are kept at the current version. Kinds with a
// status are rewritten through it, bypassing the admission webhooks, which could reject an old
// object for unrelated reasons.
func migrations() map[client.Object]crdmigrator.ByObjectConfig {
	withStatus := crdmigrator.ByObjectConfig{UseStatusForStorageVersionMigration: true}
	plain := crdmigrator.ByObjectConfig{}
	return map[client.Object]crdmigrator.ByObjectConfig{
		&addonsv1.ClusterResourceSet{}:                withStatus,
		&addonsv1.ClusterResourceSetBinding{}:         plain,
		&bootstrapv1.KubeadmConfig{}:                  withStatus,
		&bootstrapv1.KubeadmConfigTemplate{}:          plain,
		&clusterv1.Cluster{}:                          withStatus,
		&clusterv1.ClusterClass{}:                     withStatus,
		&clusterv1.Machine{}:                          withStatus,
		&clusterv1.MachineDeployment{}:                withStatus,
		&clusterv1.MachineDrainRule{}:                 plain,
		&clusterv1.MachineHealthCheck{}:               withStatus,
		&clusterv1.MachinePool{}:                      withStatus,
		&clusterv1.MachineSet{}:                       withStatus,
		&controlplanev1.KubeadmControlPlane{}:         withStatus,
		&controlplanev1.KubeadmControlPlaneTemplate{}: plain,
		&ipamv1.IPAddress{}:                           plain,
		&ipamv1.IPAddressClaim{}:                      withStatus,
	}
}
