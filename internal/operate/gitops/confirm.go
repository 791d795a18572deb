package gitops

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/removal"
)

// Confirm confirms that a cluster whose files were removed from Git is to be deleted. It rejects a
// cluster whose files are in Git: a confirmation in advance would disable the protection from a bad
// merge.
func (p *Plane) Confirm(ctx context.Context, namespace, name string) (*anywherev1.Cluster, error) {
	cluster, err := p.Find(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	waits, err := p.removalWaits(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if !waits {
		return nil, fmt.Errorf("the removal of cluster %q needs no confirmation: its files are in Git, or it is not managed through Git\nTry: drover gitops status", cluster.Name)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, anywherev1.GitRemovalAnnotation, removal.Confirmed)
	if err := p.Client.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return nil, fmt.Errorf("confirming the removal of cluster %q: %w", cluster.Name, err)
	}
	return cluster, nil
}

// removalWaits reports whether a cluster is in use while its FluxConfig waits for a confirmation.
func (p *Plane) removalWaits(ctx context.Context, c *anywherev1.Cluster) (bool, error) {
	ref := c.Spec.GitOpsRef
	if ref == nil || !removal.Waits(c) {
		return false, nil
	}
	config := &anywherev1.FluxConfig{}
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, config); err != nil {
		return false, fmt.Errorf("reading FluxConfig %q: %w", ref.Name, err)
	}
	applied := apimeta.FindStatusCondition(config.Status.Conditions, anywherev1.ClustersApplied)
	return applied != nil && applied.Reason == anywherev1.RemovalUnconfirmedReason, nil
}
