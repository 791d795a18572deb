package active

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/workload"
)

const name = "packagebundlecontroller"

// keepVerdicts is larger than the number of bundles on a plane.
const keepVerdicts = 256

// Names of indexes: Clusters by name, and Packages by Cluster.
const (
	byName   = "packages.active.name"
	byTarget = "packages.active.target"
)

// Connections are the sources of events that Cluster API and the manager provide.
type Connections struct {
	// Clusters reports new and lost connections to clusters.
	Clusters interface {
		GetClusterSource(name string, to func(context.Context, client.Object) []ctrlreconcile.Request, o ...clustercache.GetClusterSourceOption) crsource.Source
	}
	// Metadata watches the metadata of all Secrets and namespaces.
	Metadata cache.Cache
}

// SetupWithManager adds the controller, its indexes and its watches.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, connections Connections, o controller.Options) error {
	if err := registerMetrics(mgr.GetCache()); err != nil {
		return fmt.Errorf("registering metrics of controller %q: %w", name, err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.Cluster{}, byName, func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		return fmt.Errorf("indexing Clusters by name: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &packagesv1.Package{}, byTarget, targetKey); err != nil {
		return fmt.Errorf("indexing Packages by Cluster: %w", err)
	}
	c.versionQueries, c.bundleChecks, c.copies = operation.New(ctx, c.Limits, c.wake), operation.New(ctx, c.Limits, c.wake), operation.New(ctx, c.Limits, c.wake)
	c.verdicts = lru.New(keepVerdicts)
	toCluster := handler.EnqueueRequestsFromMapFunc(ofCluster)
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&packagesv1.PackageBundleController{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&packagesv1.PackageBundle{}, handler.EnqueueRequestsFromMapFunc(c.ofBundle), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&packagesv1.Package{}, handler.EnqueueRequestsFromMapFunc(ofPackage), builder.WithPredicates(targetChanged())).
		Watches(&clusterv1.Cluster{}, toCluster, builder.WithPredicates(clusterChanged())).
		Watches(&controlplanev1.KubeadmControlPlane{}, handler.EnqueueRequestsFromMapFunc(c.ofControlPlane), builder.WithPredicates(versionChanged())).
		WatchesRawSource(connections.Clusters.GetClusterSource(name, ofCluster)).
		WatchesRawSource(crsource.Func(func(_ context.Context, q queue) error {
			c.queue.Store(&q)
			return nil
		})).
		WatchesRawSource(crsource.Kind(connections.Metadata, client.Object(metadataOf("Secret")), handler.EnqueueRequestsFromMapFunc(c.ofSecret))).
		WatchesRawSource(crsource.Kind(connections.Metadata, client.Object(metadataOf("Namespace")), handler.EnqueueRequestsFromMapFunc(ofNamespace))).
		WithOptions(reconcile.NewGuard(mgr, "PackageBundleController").Options(o))
	return b.Complete(c)
}

// wake triggers a reconcile.
func (c *Controller) wake(key client.ObjectKey) {
	if q := c.queue.Load(); q != nil {
		(*q).Add(ctrlreconcile.Request{NamespacedName: key})
	}
}

// Notice handles a change on a cluster.
func (c *Controller) Notice(e workload.Event) {
	key := client.ObjectKey{Namespace: packagesv1.Namespace, Name: e.Cluster.Name}
	switch {
	case e.Resource == namespacesWatch.Resource && !e.StatusOnly:
	case e.Resource == copiesWatch("").Resource && e.Object == nil:
	case e.Resource == copiesWatch("").Resource && e.Object.Labels[copyLabel] == e.Cluster.Name:
		if e.Deleted {
			c.memory.lost(key, secretKey{e.Object.Namespace, e.Object.Name})
		}
	default:
		return
	}
	c.wake(key)
}

func named(name string) []ctrlreconcile.Request {
	return []ctrlreconcile.Request{{NamespacedName: types.NamespacedName{Namespace: packagesv1.Namespace, Name: name}}}
}

func ofCluster(_ context.Context, o client.Object) []ctrlreconcile.Request { return named(o.GetName()) }

func ofPackage(_ context.Context, o client.Object) []ctrlreconcile.Request {
	if p, ok := o.(*packagesv1.Package); ok && p.Status.Target != nil {
		return named(p.Status.Target.Cluster)
	}
	return nil
}

// ofControlPlane also makes the next reconcile query the version again.
func (c *Controller) ofControlPlane(_ context.Context, o client.Object) []ctrlreconcile.Request {
	cluster := o.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" {
		return nil
	}
	requests := named(cluster)
	c.memory.Update(requests[0].NamespacedName, func(k *knowledge) { k.through = nil })
	return requests
}

// ofSecret maps a Secret with credentials to the PackageBundleControllers that use it.
func (c *Controller) ofSecret(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	switch o.GetName() {
	case mirror.Secret, mirror.Credentials, CloudSecret:
	default:
		return nil
	}
	if cluster, found := strings.CutPrefix(o.GetNamespace(), packagesv1.NamespacePrefix); found {
		return named(cluster)
	}
	if o.GetNamespace() != packagesv1.Namespace {
		return nil
	}
	return c.selected(ctx, func(*packagesv1.PackageBundleController) bool { return true })
}

func ofNamespace(_ context.Context, o client.Object) []ctrlreconcile.Request {
	if cluster, found := strings.CutPrefix(o.GetName(), packagesv1.NamespacePrefix); found {
		return named(cluster)
	}
	return nil
}

// ofBundle maps a bundle to the PackageBundleControllers that use it or wait for it.
func (c *Controller) ofBundle(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	if o.GetNamespace() != packagesv1.Namespace {
		return nil
	}
	out := c.selected(ctx, func(p *packagesv1.PackageBundleController) bool {
		return p.Spec.ActiveBundle == o.GetName() || p.Status.LatestBundle == o.GetName()
	})
	for _, key := range c.memory.waiting(o.GetName()) {
		out = append(out, ctrlreconcile.Request{NamespacedName: key})
	}
	return out
}

func (c *Controller) selected(ctx context.Context, match func(*packagesv1.PackageBundleController) bool) []ctrlreconcile.Request {
	list := &packagesv1.PackageBundleControllerList{}
	if err := c.Client.List(ctx, list, client.InNamespace(packagesv1.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	var out []ctrlreconcile.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// targetKey is the index key of a Package: the Cluster that it is on.
func targetKey(o client.Object) []string {
	p, ok := o.(*packagesv1.Package)
	if !ok || p.Status.Target == nil {
		return nil
	}
	return []string{client.ObjectKey{Namespace: p.Status.Target.ClusterNamespace, Name: p.Status.Target.Cluster}.String()}
}

// targetChanged passes updates that change the target or the name of a package.
func targetChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*packagesv1.Package)
		is, ok2 := e.ObjectNew.(*packagesv1.Package)
		if !ok || !ok2 {
			return true
		}
		a, b := was.Status.Target, is.Status.Target
		return (a == nil) != (b == nil) || a != nil && *a != *b || was.Spec.PackageName != is.Spec.PackageName
	}}
}

// clusterChanged passes new and deleted Clusters, those that are initialized, and those whose
// labels or annotations change, which say whose they are.
func clusterChanged() predicate.Predicate {
	initialized := func(o client.Object) bool {
		c, ok := o.(*clusterv1.Cluster)
		return ok && (c.Status.Initialization.ControlPlaneInitialized == nil || *c.Status.Initialization.ControlPlaneInitialized)
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return initialized(was) != initialized(is) || !maps.Equal(was.GetLabels(), is.GetLabels()) || !maps.Equal(was.GetAnnotations(), is.GetAnnotations())
	}}
}

// versionChanged passes upgrades of control planes.
func versionChanged() predicate.Predicate {
	version := func(o client.Object) string {
		if c, ok := o.(*controlplanev1.KubeadmControlPlane); ok {
			return c.Status.Version
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return version(e.ObjectOld) != version(e.ObjectNew) },
	}
}
