package chart

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// metadataChanged reports whether anything but the status differs.
func metadataChanged(was, is ctrlclient.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(was.GetLabels(), is.GetLabels()) || !maps.Equal(was.GetAnnotations(), is.GetAnnotations())
}

// clusterEvents maps a Cluster to the HelmChartProxies that select it or selected it before. The
// status of clusters changes often, and concerns only those whose templates refer to it.
type clusterEvents struct{ *Controller }

// Create handles a new Cluster.
func (h *clusterEvents) Create(ctx context.Context, e event.CreateEvent, q requests) {
	h.enqueue(ctx, q, everyUse, e.Object)
}

// Update handles a changed Cluster.
func (h *clusterEvents) Update(ctx context.Context, e event.UpdateEvent, q requests) {
	if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
		return // a resync
	}
	if metadataChanged(e.ObjectOld, e.ObjectNew) {
		h.enqueue(ctx, q, everyUse, e.ObjectOld, e.ObjectNew)
		return
	}
	h.enqueue(ctx, q, func(u template.Uses) bool { return u.Cluster.Status }, e.ObjectNew)
}

// Delete handles a deleted Cluster.
func (h *clusterEvents) Delete(ctx context.Context, e event.DeleteEvent, q requests) {
	h.enqueue(ctx, q, everyUse, e.Object)
}

// Generic is never called.
func (h *clusterEvents) Generic(context.Context, event.GenericEvent, requests) {}

func everyUse(template.Uses) bool { return true }

// enqueue adds the HelmChartProxies that select one of the versions of a cluster and whose
// templates are concerned.
func (c *Controller) enqueue(ctx context.Context, q requests, concerned func(template.Uses) bool, clusters ...ctrlclient.Object) {
	list := &addonsv1.HelmChartProxyList{}
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(clusters[0].GetNamespace()), ctrlclient.UnsafeDisableDeepCopy)
	if err != nil {
		logger(ctx).Error(err, "Failed to list HelmChartProxies")
		return
	}
	for i := range list.Items {
		chart := &list.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(&chart.Spec.ClusterSelector)
		if err != nil {
			continue // its own condition reports it
		}
		if program := c.programs.get(chart).program; program != nil && !concerned(program.Uses()) {
			continue
		}
		for _, cluster := range clusters {
			if selector.Matches(labels.Set(cluster.GetLabels())) {
				q.Add(reconcile.Request{NamespacedName: ctrlclient.ObjectKeyFromObject(chart)})
				break
			}
		}
	}
}

// objectEvents maps a control plane or an infrastructure cluster to the HelmChartProxies whose
// templates refer to it.
type objectEvents struct{ *Controller }

// Create handles a new object.
func (h *objectEvents) Create(ctx context.Context, e event.CreateEvent, q requests) {
	h.enqueueOwner(ctx, q, e.Object, anyObject)
}

// Update handles a changed object.
func (h *objectEvents) Update(ctx context.Context, e event.UpdateEvent, q requests) {
	switch {
	case e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion():
	case metadataChanged(e.ObjectOld, e.ObjectNew):
		h.enqueueOwner(ctx, q, e.ObjectNew, anyObject)
	default:
		h.enqueueOwner(ctx, q, e.ObjectNew, func(u template.Uses) bool { return u.ControlPlane.Status || u.InfraCluster.Status })
	}
}

// Delete handles a deleted object.
func (h *objectEvents) Delete(ctx context.Context, e event.DeleteEvent, q requests) {
	h.enqueueOwner(ctx, q, e.Object, anyObject)
}

// Generic is never called.
func (h *objectEvents) Generic(context.Context, event.GenericEvent, requests) {}

func anyObject(u template.Uses) bool { return u.ControlPlane.Any || u.InfraCluster.Any }

// enqueueOwner finds the Cluster of an object by its owner or its label.
func (h *objectEvents) enqueueOwner(ctx context.Context, q requests, obj ctrlclient.Object, concerned func(template.Uses) bool) {
	key := ctrlclient.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[clusterv1.ClusterNameLabel]}
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == "Cluster" {
			key.Name = ref.Name
		}
	}
	cluster := &clusterv1.Cluster{}
	if key.Name == "" || h.Client.Get(ctx, key, cluster) != nil {
		return // a new Cluster is an event itself
	}
	h.enqueue(ctx, q, concerned, cluster)
}
