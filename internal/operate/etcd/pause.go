package etcd

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const (
	// restoringAnnotation is on a Cluster while its etcd is restored, with the name of the restore.
	// One that is interrupted and run again has the same name.
	restoringAnnotation = "etcd.drover.dev/restoring"
	// pausedAnnotation is on objects that a restore, not their user, has paused.
	pausedAnnotation = "etcd.drover.dev/paused-by-restore"
)

// pause stops controllers from replacing machines whose API server doesn't respond, and returns the
// name of the restore.
func (r *Restore) pause(ctx context.Context, id string) (string, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Objects.Get(ctx, r.Cluster.ObjectKey, cluster); err != nil {
		return "", fmt.Errorf("pausing the cluster: %w", err)
	}
	if earlier := cluster.Annotations[restoringAnnotation]; earlier != "" {
		id = earlier
	}
	clusters, err := r.described(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range clusters {
		if c.IsPaused() {
			continue
		}
		if err := r.change(ctx, c, func() {
			annotate(c, anywherev1.PausedAnnotation, "true")
			annotate(c, pausedAnnotation, "true")
		}); err != nil {
			return "", err
		}
	}
	return id, r.change(ctx, cluster, func() {
		annotate(cluster, restoringAnnotation, id)
		if !ptr.Deref(cluster.Spec.Paused, false) {
			cluster.Spec.Paused = ptr.To(true)
			annotate(cluster, pausedAnnotation, "true")
		}
	})
}

// resume undoes pause.
func (r *Restore) resume(ctx context.Context) error {
	cluster := &clusterv1.Cluster{}
	if err := r.Objects.Get(ctx, r.Cluster.ObjectKey, cluster); err != nil {
		return fmt.Errorf("resuming the cluster: %w", err)
	}
	if err := r.change(ctx, cluster, func() {
		if cluster.Annotations[pausedAnnotation] != "" {
			cluster.Spec.Paused = nil
		}
		delete(cluster.Annotations, pausedAnnotation)
		delete(cluster.Annotations, restoringAnnotation)
	}); err != nil {
		return err
	}
	clusters, err := r.described(ctx)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if c.Annotations[pausedAnnotation] == "" {
			continue
		}
		if err := r.change(ctx, c, func() {
			delete(c.Annotations, anywherev1.PausedAnnotation)
			delete(c.Annotations, pausedAnnotation)
		}); err != nil {
			return err
		}
	}
	return nil
}

// described returns the Cluster of Drover that the cluster is made from, if there is one.
func (r *Restore) described(ctx context.Context) ([]*anywherev1.Cluster, error) {
	if r.Cluster.Namespace != anywherev1.SystemNamespace {
		return nil, nil
	}
	all := &anywherev1.ClusterList{}
	if err := r.Objects.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var out []*anywherev1.Cluster
	for i := range all.Items {
		if all.Items[i].Name == r.Cluster.Name {
			out = append(out, &all.Items[i])
		}
	}
	return out, nil
}

func (r *Restore) change(ctx context.Context, obj client.Object, edit func()) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying a %T: not an object", obj)
	}
	edit()
	if err := r.Objects.Patch(ctx, obj, client.MergeFrom(before), client.FieldOwner("drover")); err != nil {
		return fmt.Errorf("changing cluster %q: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

func annotate(obj client.Object, key, value string) {
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	obj.SetAnnotations(all)
}
