package lifecycle

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// keptClusters are the clusters that were paused, as "kind/namespace/name".
const keptClusters = "clusters-paused"

// held is a cluster that can be paused: one of ours, or the one of Cluster API below it.
type held struct {
	client.Object

	name   string
	paused bool
	set    func(pause bool)
}

// pauseOthers has nobody work on workload clusters while their management cluster changes. They run on. What somebody else has paused is
// left as it is.
func (m *Management) pauseOthers(ctx context.Context, p *workflow.Progress) error {
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	all, err := m.others(ctx, w)
	if err != nil {
		return err
	}
	var paused []string
	if _, err := p.Kept(keptClusters, &paused); err != nil {
		return err
	}
	for _, h := range all {
		if h.paused {
			continue
		}
		if !slices.Contains(paused, h.name) {
			paused = append(paused, h.name)
			// First the record: what is recorded and was not done is no harm.
			if err := p.Keep(keptClusters, paused); err != nil {
				return err
			}
		}
		if err := h.change(ctx, w.plane.Client, true); err != nil {
			return err
		}
	}
	if len(paused) == 0 {
		return workflow.Skip("there are no workload clusters that are not paused already")
	}
	return nil
}

// resumeOthers resumes exactly the clusters that were paused.
func (m *Management) resumeOthers(ctx context.Context, p *workflow.Progress) error {
	var paused []string
	if _, err := p.Kept(keptClusters, &paused); err != nil {
		return err
	}
	if len(paused) == 0 {
		return workflow.Skip("nothing was paused")
	}
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	all, err := m.others(ctx, w)
	if err != nil {
		return err
	}
	for _, h := range slices.Backward(all) {
		if h.paused && slices.Contains(paused, h.name) {
			if err := h.change(ctx, w.plane.Client, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// others are all clusters but this one, ours first.
func (m *Management) others(ctx context.Context, w *Workload) ([]held, error) {
	var all []held
	ours := &anywherev1.ClusterList{}
	theirs := &clusterv1.ClusterList{}
	for _, list := range []client.ObjectList{ours, theirs} {
		if err := w.plane.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing workload clusters: %w", err)
		}
	}
	for i := range ours.Items {
		if c := &ours.Items[i]; c.Name != m.Config.Cluster.Name {
			all = append(all, held{c, "Cluster/" + c.Namespace + "/" + c.Name, c.IsPaused(), func(pause bool) { setPaused(c, pause) }})
		}
	}
	for i := range theirs.Items {
		if c := &theirs.Items[i]; c.Name != m.Config.Cluster.Name {
			all = append(all, held{c, "cluster-api/" + c.Namespace + "/" + c.Name, ptr.Deref(c.Spec.Paused, false), func(pause bool) {
				c.Spec.Paused = nil
				if pause {
					c.Spec.Paused = ptr.To(true)
				}
			}})
		}
	}
	return all, nil
}

func setPaused(c *anywherev1.Cluster, pause bool) { //nolint:revive // Both directions of one thing.
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	delete(c.Annotations, anywherev1.PausedAnnotation)
	if pause {
		c.Annotations[anywherev1.PausedAnnotation] = "true"
	}
}

// change writes it, and does not mind a cluster that has gone.
func (h held) change(ctx context.Context, c client.Client, pause bool) error {
	before := h.DeepCopyObject().(client.Object) // A copy of an object is one.
	h.set(pause)
	err := c.Patch(ctx, h.Object, client.MergeFrom(before), client.FieldOwner(anywherev1.FieldManagerCLI))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("pausing or resuming %s: %w", h.name, err)
	}
	return nil
}
