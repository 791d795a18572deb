package bootstrap

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// HandOver moves a cluster to another management plane for good. The plane is the management
// cluster of that name, which may be the cluster itself, or an embedded plane if the name is empty.
//
// The cluster is paused on the source before it names its new management plane, and resumed on the
// destination after the source has deleted it, so that never more than one side acts on it. Like
// Move, HandOver may be killed at any time and called again.
func HandOver(ctx context.Context, from, to *rest.Config, name, manager string) error {
	source, err := newClient(from)
	if err != nil {
		return err
	}
	if err := assign(ctx, source, name, manager); err != nil {
		return fmt.Errorf("assigning cluster %q to its new management plane: %w", name, err)
	}
	return Move(ctx, from, to, name)
}

// assign pauses a cluster and makes it name its new management plane. A cluster that has moved
// already is left alone.
func assign(ctx context.Context, c client.Client, name, manager string) error {
	ours, err := listClusters(ctx, c)
	if err != nil {
		return err
	}
	for i := range ours.Items {
		u := &ours.Items[i]
		if u.GetName() != name {
			continue
		}
		p := byAnnotation(u, anywherev1.PausedAnnotation, "true")
		if !p.paused { // The name of the management plane is immutable unless a cluster is paused.
			if err := change(ctx, c, p, func() { p.set(); annotate(u, PausedForMove, name) }); err != nil {
				return err
			}
		}
		if err := change(ctx, c, p, func() { setManager(u, manager) }); err != nil {
			return err
		}
	}
	return nil
}

// setManager makes a Cluster name its management plane. Only management clusters have a name.
func setManager(u *unstructured.Unstructured, manager string) {
	unstructured.RemoveNestedField(u.Object, "spec", "management")
	unstructured.RemoveNestedField(u.Object, "spec", "managementCluster")
	if manager == "" {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "management")
		return
	}
	_ = unstructured.SetNestedField(u.Object, manager, "spec", "managementCluster", "name")
}
