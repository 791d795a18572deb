package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// name differs from that of the controller of Cluster API.
const name = "anywhere-cluster"

// SetupWithManager adds the controller and its watches. Of Secrets and namespaces, only the
// metadata is watched.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, metadata cache.Cache, o controller.Options) error {
	filter := predicates.ResourceHasFilterLabel(mgr.GetScheme(), mgr.GetLogger(), c.WatchFilter)
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&anywherev1.Cluster{}, builder.WithPredicates(filter, predicate.Funcs{UpdateFunc: userChanged})).
		Watches(&anywherev1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.othersOf), builder.WithPredicates(predicate.Funcs{UpdateFunc: never})).
		Watches(&addonsv1.HelmReleaseProxy{}, handler.EnqueueRequestsFromMapFunc(c.ofRelease), builder.WithPredicates(predicate.Funcs{UpdateFunc: statusChanged})).
		Watches(&addonsv1.HelmChartProxy{}, handler.EnqueueRequestsFromMapFunc(c.ofAddOn), builder.WithPredicates(predicate.Funcs{UpdateFunc: declarationChanged})).
		Watches(&packagesv1.Package{}, handler.EnqueueRequestsFromMapFunc(c.ofAddOn), builder.WithPredicates(predicate.Funcs{UpdateFunc: declarationChanged})).
		Watches(&packagesv1.PackageBundleController{}, handler.EnqueueRequestsFromMapFunc(c.ofAddOn), builder.WithPredicates(predicate.Funcs{UpdateFunc: declarationChanged})).
		Watches(&packagesv1.PackageBundleController{}, handler.EnqueueRequestsFromMapFunc(c.ofPackages), builder.WithPredicates(predicate.Funcs{UpdateFunc: never})).
		WatchesRawSource(source.Kind(metadata, metaOf("Secret"), handler.EnqueueRequestsFromMapFunc(c.ofSecret), predicate.Funcs{UpdateFunc: versionChanged})).
		WatchesRawSource(source.Kind(metadata, metaOf("Namespace"), handler.EnqueueRequestsFromMapFunc(c.ofPackages), predicate.Funcs{UpdateFunc: versionChanged}))
	for _, made := range []client.Object{
		&clusterv1.Cluster{}, &infrav1.PacketCluster{}, &controlplanev1.KubeadmControlPlane{}, &etcdv1.EtcdadmCluster{}, &clusterv1.MachineDeployment{}, &clusterv1.MachineHealthCheck{},
		&infrav1.PacketMachineTemplate{}, &bootstrapv1.KubeadmConfigTemplate{}, &addonsv1.HelmChartProxy{},
	} {
		b = b.Watches(made, handler.EnqueueRequestsFromMapFunc(ofLabels), builder.WithPredicates(predicate.Funcs{UpdateFunc: versionChanged}))
	}
	for _, below := range []client.Object{&clusterv1.MachineSet{}, &clusterv1.Machine{}} {
		b = b.Watches(below, handler.EnqueueRequestsFromMapFunc(ofLabels), builder.WithPredicates(predicate.Funcs{UpdateFunc: certificateChanged}))
	}
	for _, config := range []client.Object{
		&anywherev1.DockerDatacenterConfig{}, &anywherev1.PacketDatacenterConfig{}, &anywherev1.PacketMachineConfig{},
		&anywherev1.FluxConfig{}, &anywherev1.GitOpsConfig{}, &anywherev1.OIDCConfig{},
	} {
		b = b.Watches(config, handler.EnqueueRequestsFromMapFunc(c.ofConfig), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	b, err := c.watchAccess(mgr, b)
	if err != nil {
		return err
	}
	if err := b.WithOptions(reconcile.NewGuard(mgr, "AnywhereCluster").Options(o)).Complete(c); err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}

// metaOf returns an empty PartialObjectMetadata of a core kind.
func metaOf(kind string) client.Object {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return meta
}

// watchAccess watches the metadata of Roles and RoleBindings that this controller created.
func (c *Controller) watchAccess(mgr ctrl.Manager, b *builder.Builder) (*builder.Builder, error) {
	ours, err := labels.NewRequirement(anywherev1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	access, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultLabelSelector: labels.NewSelector().Add(*ours), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("watching Roles and RoleBindings: %w", err)
	}
	for _, kind := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		meta, err := metadataOf(kind, mgr.GetScheme())
		if err != nil {
			return nil, err
		}
		b = b.WatchesRawSource(source.Kind(access, client.Object(meta), handler.EnqueueRequestsFromMapFunc(c.ofSecret), predicate.Funcs{UpdateFunc: versionChanged}))
	}
	c.Access = access
	return b, mgr.Add(access)
}
