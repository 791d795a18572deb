package etcd

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// restoringAnnotation is on objects that a restore has paused, with the name of the restore. One
// that is interrupted and run again has the same name.
const restoringAnnotation = "etcd.drover.dev/restoring"

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
			annotate(c, restoringAnnotation, id)
		}); err != nil {
			return "", err
		}
	}
	// The name stays on a Cluster that its user has paused, too; only its own pause is undone.
	return id, r.change(ctx, cluster, func() {
		if !ptr.Deref(cluster.Spec.Paused, false) {
			cluster.Spec.Paused = ptr.To(true)
			annotate(cluster, restoringAnnotation, id)
		}
	})
}

// resume undoes pause.
func (r *Restore) resume(ctx context.Context) error {
	cluster := &clusterv1.Cluster{}
	if err := r.Objects.Get(ctx, r.Cluster.ObjectKey, cluster); err != nil {
		return fmt.Errorf("resuming the cluster: %w", err)
	}
	if cluster.Annotations[restoringAnnotation] != "" {
		if err := r.change(ctx, cluster, func() {
			cluster.Spec.Paused = nil
			delete(cluster.Annotations, restoringAnnotation)
		}); err != nil {
			return err
		}
	}
	clusters, err := r.described(ctx)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if c.Annotations[restoringAnnotation] == "" {
			continue
		}
		if err := r.change(ctx, c, func() {
			delete(c.Annotations, anywherev1.PausedAnnotation)
			delete(c.Annotations, restoringAnnotation)
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
