package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/model/spec"
)

func never(event.UpdateEvent) bool { return false }

func versionChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
}

// userChanged reports whether somebody other than this controller has changed a Cluster. A resync
// counts too, because the status contains days until certificates expire.
func userChanged(e event.UpdateEvent) bool {
	was, is := e.ObjectOld, e.ObjectNew
	return !versionChanged(e) || was.GetGeneration() != is.GetGeneration() || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || !maps.Equal(was.GetLabels(), is.GetLabels())
}

// statusChanged reports whether the inputs of DefaultCNIConfigured, or of an upgrade that waits for
// a release, have changed.
func statusChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*addonsv1.HelmReleaseProxy)
	is, ok2 := e.ObjectNew.(*addonsv1.HelmReleaseProxy)
	return !ok || !ok2 || was.Generation != is.Generation || was.Status.ObservedGeneration != is.Status.ObservedGeneration ||
		!equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) || !equality.Semantic.DeepEqual(was.Status.Applied, is.Status.Applied) ||
		!maps.Equal(was.Annotations, is.Annotations) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()
}

// certificateChanged reports changes of the certificates and of an upgrade in place, the only
// relevant fields of Machines.
func certificateChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*clusterv1.Machine)
	is, ok2 := e.ObjectNew.(*clusterv1.Machine)
	return ok && ok2 && (!was.Status.CertificatesExpiryDate.Equal(&is.Status.CertificatesExpiryDate) || updating(was) != updating(is) || isUpdating(was) != isUpdating(is))
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// ofLabels returns the Cluster of an object.
func ofLabels(_ context.Context, o client.Object) []reconcile.Request {
	labels := o.GetLabels()
	if o.GetNamespace() != anywherev1.SystemNamespace || labels[anywherev1.ClusterNameLabel] == "" {
		return nil
	}
	return request(labels[anywherev1.ClusterNamespaceLabel], labels[anywherev1.ClusterNameLabel])
}

// ofRelease returns the Cluster of a release of the Pod network, or of any release while the
// Cluster is upgraded.
func (c *Controller) ofRelease(ctx context.Context, o client.Object) []reconcile.Request {
	release, ok := o.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return nil
	}
	key := index.ClusterKey(release)
	if release.Namespace == anywherev1.SystemNamespace && release.Labels[addonsv1.HelmChartProxyLabel] == build.NetworkName(key.Name) {
		return c.ofName(ctx, key.Name)
	}
	made := &clusterv1.Cluster{}
	if key.Namespace != anywherev1.SystemNamespace || c.Client.Get(ctx, key, made, client.UnsafeDisableDeepCopy) != nil || lockstep.Of(made) == nil {
		return nil
	}
	return ofLabels(ctx, made)
}

// ofAddOn returns the Clusters that are upgraded, which may wait for an add-on.
func (c *Controller) ofAddOn(ctx context.Context, _ client.Object) []reconcile.Request {
	return c.all(ctx, isUpgrading)
}

// declarationChanged reports whether the stage of an add-on, or which clusters it is for, may have
// changed.
func declarationChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

// ofName returns the Cluster of a Cluster API cluster.
func (c *Controller) ofName(ctx context.Context, name string) []reconcile.Request {
	made := &clusterv1.Cluster{}
	if c.Client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, made, client.UnsafeDisableDeepCopy) != nil {
		return nil // Its deletion triggers a reconcile.
	}
	return ofLabels(ctx, made)
}

// ofPackages returns the Clusters of a PackageBundleController or a namespace of packages: the one
// it was created for, and the one that has its name.
func (c *Controller) ofPackages(ctx context.Context, o client.Object) []reconcile.Request {
	name, isNamespace := strings.CutPrefix(o.GetName(), packagesv1.NamespacePrefix)
	if !isNamespace && o.GetNamespace() == "" {
		return nil
	}
	out := c.ofName(ctx, name)
	labels := o.GetLabels()
	if owner := request(labels[anywherev1.ClusterNamespaceLabel], labels[anywherev1.ClusterNameLabel]); owner[0].Name != "" && !slices.Equal(out, owner) {
		out = append(out, owner...)
	}
	return out
}

// ofSecret returns the Clusters that read a Secret or own it.
func (c *Controller) ofSecret(ctx context.Context, o client.Object) []reconcile.Request {
	labels := o.GetLabels()
	if owner := labels[anywherev1.ClusterNameLabel]; owner != "" {
		return request(labels[anywherev1.ClusterNamespaceLabel], owner)
	}
	if o.GetNamespace() != anywherev1.SystemNamespace {
		return nil
	}
	if owner := labels[clusterv1.ClusterNameLabel]; owner != "" {
		if o.GetName() != kubeconfigName(owner) {
			return nil
		}
		return c.ofName(ctx, owner)
	}
	return c.all(ctx, readsSecrets)
}

// readsSecrets reports whether a Secret of an administrator may affect a Cluster.
func readsSecrets(c *anywherev1.Cluster) bool {
	mirror := c.Spec.RegistryMirrorConfiguration
	return c.Status.FailureReason != nil || mirror != nil && mirror.Authenticate
}

// othersOf returns the Clusters that the creation or deletion of a Cluster may affect: its
// management cluster, and Clusters that wait for theirs, for their name or for machines.
func (c *Controller) othersOf(ctx context.Context, o client.Object) []reconcile.Request {
	return c.all(ctx, func(other *anywherev1.Cluster) bool {
		return other.UID != o.GetUID() && (!other.DeletionTimestamp.IsZero() || other.Status.FailureReason != nil || capacity.IsWaiting(other))
	})
}

// ofConfig returns the Clusters that reference a config.
func (c *Controller) ofConfig(ctx context.Context, o client.Object) []reconcile.Request {
	kind, err := apiutil.GVKForObject(o, c.Client.Scheme())
	if err != nil {
		return nil
	}
	ref := anywherev1.Ref{Kind: kind.Kind, Name: o.GetName()}
	return c.all(ctx, func(user *anywherev1.Cluster) bool {
		return user.Namespace == o.GetNamespace() && slices.Contains(spec.References(user), ref)
	})
}

func (c *Controller) all(ctx context.Context, which func(*anywherev1.Cluster) bool) []reconcile.Request {
	list := &anywherev1.ClusterList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list clusters")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if which(&list.Items[i]) {
			out = append(out, request(list.Items[i].Namespace, list.Items[i].Name)...)
		}
	}
	return out
}
