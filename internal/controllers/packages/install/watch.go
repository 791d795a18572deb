package install

import (
	"context"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
)

// userChanged reports whether a Package changed other than in its status and finalizers.
func userChanged(e event.UpdateEvent) bool {
	was, is := e.ObjectOld, e.ObjectNew
	return was.GetGeneration() != is.GetGeneration() || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || !maps.Equal(was.GetLabels(), is.GetLabels())
}

// marksChanged reports whether labels or annotations changed, which say whose an object is.
func marksChanged(e event.UpdateEvent) bool {
	return !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
}

// releaseChanged reports whether a change affects the status of a Package.
func releaseChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*addonsv1.HelmReleaseProxy)
	is, ok2 := e.ObjectNew.(*addonsv1.HelmReleaseProxy)
	return !ok || !ok2 || was.Generation != is.Generation || summaryOf(was) != summaryOf(is)
}

// summary is the part of a HelmReleaseProxy that the status of a Package depends on.
type summary struct {
	observed                  int64
	attempted                 bool
	available, release, ready conditionValue
}

type conditionValue struct {
	status          metav1.ConditionStatus
	reason, message string
}

func summaryOf(r *addonsv1.HelmReleaseProxy) summary {
	of := func(name string) conditionValue {
		c := conditions.Get(r, name)
		if c == nil {
			return conditionValue{}
		}
		return conditionValue{c.Status, c.Reason, c.Message}
	}
	return summary{
		observed: r.Status.ObservedGeneration, attempted: r.Status.Attempt != nil,
		available: of(addonsv1.ClusterAvailable), release: of(addonsv1.ReleaseReady), ready: of(clusterv1.ReadyCondition),
	}
}

// byOthers drops events of the controller's own writes.
func byOthers(wrote func(client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !wrote(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return !wrote(e.ObjectNew) },
	}
}

// stateChanged reports whether a change may unblock other Packages.
func stateChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*packagesv1.Package)
	is, ok2 := e.ObjectNew.(*packagesv1.Package)
	return !ok || !ok2 || was.Status.State != is.Status.State || was.Status.Source != is.Status.Source ||
		was.Status.ObservedGeneration != is.Status.ObservedGeneration || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()
}

func controllerChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*packagesv1.PackageBundleController)
	is, ok2 := e.ObjectNew.(*packagesv1.PackageBundleController)
	return !ok || !ok2 || was.Generation != is.Generation || was.Status.LatestBundle != is.Status.LatestBundle
}

func bundleChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

// usersOf returns the Packages that depend on another.
func (c *Controller) usersOf(_ context.Context, o client.Object) []reconcile.Request {
	p, ok := o.(*packagesv1.Package)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, cluster := range target.Candidates(client.ObjectKeyFromObject(p)) {
		for _, key := range c.memory.usersOf(needFor(p.Namespace, cluster, p.Spec.PackageName)) {
			out = append(out, reconcile.Request{NamespacedName: key})
		}
	}
	return out
}

// ofController returns the Packages of a cluster.
func (c *Controller) ofController(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetNamespace() != packagesv1.Namespace {
		return nil
	}
	return c.packagesOf(ctx, o.GetName())
}

// ofNamespace returns the Packages of the cluster that a namespace is named after.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	cluster, ok := strings.CutPrefix(o.GetName(), packagesv1.NamespacePrefix)
	if !ok {
		return nil
	}
	return c.packagesOf(ctx, cluster)
}

func (c *Controller) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	return c.packagesOf(ctx, o.GetName())
}

func (c *Controller) packagesOf(ctx context.Context, cluster string) []reconcile.Request {
	var out []reconcile.Request
	for _, p := range c.list(ctx, client.MatchingFields{packagesByCluster: cluster}) {
		if target.Fits(&p, cluster) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&p)})
		}
	}
	return out
}

func (c *Controller) all(ctx context.Context) []reconcile.Request {
	var out []reconcile.Request
	for _, p := range c.list(ctx) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&p)})
	}
	return out
}

func (c *Controller) list(ctx context.Context, o ...client.ListOption) []packagesv1.Package {
	list := &packagesv1.PackageList{}
	if err := c.Client.List(ctx, list, append(o, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing packages failed")
		return nil
	}
	return list.Items
}

// ofBundle returns the Packages of all clusters that use a bundle or could upgrade to it.
func (c *Controller) ofBundle(ctx context.Context, o client.Object) []reconcile.Request {
	list := &packagesv1.PackageBundleControllerList{}
	err := c.Client.List(ctx, list, client.InNamespace(packagesv1.Namespace), client.MatchingFields{controllersByBundle: o.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil || o.GetNamespace() != packagesv1.Namespace {
		return nil // the cache has stopped
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, c.packagesOf(ctx, list.Items[i].Name)...)
	}
	return out
}
