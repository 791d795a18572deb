package capi

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourceset"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourcesetbinding"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinepool"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	topologycluster "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	topologymachinedeployment "sigs.k8s.io/cluster-api/core/reconcilers/topology/machinedeployment"
	topologymachineset "sigs.k8s.io/cluster-api/core/reconcilers/topology/machineset"
)

// controlPlaneTimeout is longer than that of other reconcilers: one reconcile may have to wait for
// several etcd members.
const controlPlaneTimeout = 3 * time.Minute

// controllers are all reconcilers of Cluster API.
var controllers = []struct {
	name  string
	setup func(context.Context, *wiring) error
}{
	{"CRDMigrator", migrator},
	{"ClusterClass", func(ctx context.Context, w *wiring) error {
		return (&clusterclass.Reconciler{
			Client: w.client, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("ClusterClass"))
	}},
	{"ClusterTopology", func(ctx context.Context, w *wiring) error {
		return (&topologycluster.Reconciler{
			Client: w.client, APIReader: w.reader, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("ClusterTopology"))
	}},
	{"MachineDeploymentTopology", func(ctx context.Context, w *wiring) error {
		return (&topologymachinedeployment.Reconciler{
			Client: w.client, APIReader: w.reader, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("MachineDeploymentTopology"))
	}},
	{"MachineSetTopology", func(ctx context.Context, w *wiring) error {
		return (&topologymachineset.Reconciler{
			Client: w.client, APIReader: w.reader, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("MachineSetTopology"))
	}},
	{"Cluster", func(ctx context.Context, w *wiring) error {
		return (&cluster.Reconciler{
			Client: w.client, APIReader: w.reader, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter,
			RemoteConnectionGracePeriod: remoteConnectionGracePeriod,
		}).SetupWithManager(ctx, w.mgr, w.options("Cluster"))
	}},
	{"Machine", func(ctx context.Context, w *wiring) error {
		return (&machine.Reconciler{
			Client: w.client, APIReader: w.reader, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter, RuntimeClient: w.hooks,
			RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
		}).SetupWithManager(ctx, w.mgr, w.options("Machine"))
	}},
	{"MachineSet", func(ctx context.Context, w *wiring) error {
		return (&machineset.Reconciler{
			Client: w.client, APIReader: w.reader, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter,
			PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll),
		}).SetupWithManager(ctx, w.keepMachines(), w.options("MachineSet"))
	}},
	{"MachineDeployment", func(ctx context.Context, w *wiring) error {
		return (&machinedeployment.Reconciler{
			Client: formerTemplates{w.client}, APIReader: w.reader, WatchFilterValue: w.WatchFilter, RuntimeClient: w.hooks,
		}).SetupWithManager(ctx, w.mgr, w.options("MachineDeployment"))
	}},
	{"MachinePool", func(ctx context.Context, w *wiring) error {
		return (&machinepool.Reconciler{
			Client: w.client, APIReader: w.reader, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("MachinePool"))
	}},
	{"MachineHealthCheck", func(ctx context.Context, w *wiring) error {
		return (&machinehealthcheck.Reconciler{
			Client: w.client, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("MachineHealthCheck"))
	}},
	{"ClusterResourceSet", func(ctx context.Context, w *wiring) error {
		return (&clusterresourceset.Reconciler{
			Client: w.client, ClusterCache: w.workloads, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("ClusterResourceSet"), w.secretMetadata)
	}},
	{"ClusterResourceSetBinding", func(ctx context.Context, w *wiring) error {
		return (&clusterresourcesetbinding.Reconciler{
			Client: w.client, WatchFilterValue: w.WatchFilter,
		}).SetupWithManager(ctx, w.mgr, w.options("ClusterResourceSetBinding"))
	}},
	{"KubeadmConfig", func(ctx context.Context, w *wiring) error {
		return (&kubeadmconfig.Reconciler{
			Client: w.client, APIReader: w.reader, SecretCachingClient: w.secrets, ClusterCache: w.workloads,
			WatchFilterValue: w.WatchFilter, TokenTTL: kubeadmconfig.DefaultTokenTTL,
		}).SetupWithManager(ctx, w.mgr, w.options("KubeadmConfig"))
	}},
	{"KubeadmControlPlane", func(ctx context.Context, w *wiring) error {
		options := w.options("KubeadmControlPlane")
		options.ReconciliationTimeout = controlPlaneTimeout
		return (&kubeadmcontrolplane.Reconciler{
			Client: w.client, APIReader: w.reader, SecretCachingClient: w.secrets, ClusterCache: w.controlPlanes,
			WatchFilterValue: w.WatchFilter, RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
			EtcdDialTimeout: etcdDialTimeout, EtcdCallTimeout: etcdCallTimeout, EtcdLogger: w.EtcdLogger, RuntimeClient: w.hooks,
		}).SetupWithManager(ctx, w.keepMachines(), options)
	}},
}

// migrator rewrites stored objects when a CRD's storage version changes, one at a time to limit the
// load on the API server.
func migrator(ctx context.Context, w *wiring) error {
	return (&crdmigrator.CRDMigrator{
		Client: w.client, APIReader: w.reader, Config: migrations(),
	}).SetupWithManager(ctx, w.mgr, controller.Options{MaxConcurrentReconciles: 1})
}
