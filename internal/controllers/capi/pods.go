package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

const (
	podWatch = "controlplanepods"
	// controlPlaneQueue is upstream's name for the queue of its control plane reconciler.
	controlPlaneQueue = "kubeadmcontrolplane"
	controlPlaneKind  = "KubeadmControlPlane"
)

// watchPods reconciles a control plane when its Pods become ready or unready. Upstream only polls
// unready Pods every twenty seconds, and does not notice when ready ones become unready.
func watchPods(ctx context.Context, w *wiring) error {
	connected := w.controlPlanes.GetClusterSource(podWatch, func(_ context.Context, cluster client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(cluster)}}
	})
	return ctrl.NewControllerManagedBy(w.mgr).Named(podWatch).WithOptions(w.options(podWatch)).WatchesRawSource(connected).
		Complete(reconcile.Func(func(reconcileCtx context.Context, r ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, w.watchPodsOf(reconcileCtx, r.NamespacedName, intoQueue{ctx, w.pace.queue(controlPlaneQueue)})
		}))
}

// watchPodsOf watches the Pods of one cluster's control plane, if its connection does not do so
// already.
func (w *wiring) watchPodsOf(ctx context.Context, key client.ObjectKey, into intoQueue) error {
	if into.queue == nil {
		return errors.New("the control plane reconciler has not started yet")
	}
	cluster := &clusterv1.Cluster{}
	if err := w.client.Get(ctx, key, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind != controlPlaneKind {
		return nil
	}
	controlPlane := []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: ref.Name}}}
	err := w.controlPlanes.Watch(ctx, key, clustercache.NewWatcher(clustercache.WatcherOptions{
		Name: podWatch, Watcher: into, Kind: &corev1.Pod{}, Predicates: []predicate.Predicate{readiness()},
		EventHandler: handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { return controlPlane }),
	}))
	if err != nil && !errors.Is(err, clustercache.ErrClusterNotConnected) { // The next connection triggers another attempt.
		return fmt.Errorf("watching the control plane of cluster %q: %w", key, err)
	}
	return nil
}

// intoQueue sends the events of a source to a queue until ctx ends.
type intoQueue struct {
	ctx   context.Context // sources outlive the reconcile that starts them
	queue queue
}

// Watch implements clustercache.SourceWatcher.
func (i intoQueue) Watch(s source.Source) error { return s.Start(i.ctx, i.queue) }

// readiness selects changes that may affect the health of a control plane.
func readiness() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return podReady(e.ObjectOld) != podReady(e.ObjectNew) }}
}

func podReady(o client.Object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
