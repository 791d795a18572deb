package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// keptClusters is the checkpoint key of the paused clusters, as "kind/namespace/name".
const keptClusters = "clusters-paused"

// pausable is a cluster that can be paused: one of Drover's, or the Cluster API cluster below it.
type pausable struct {
	client.Object

	name          string
	paused        bool
	pause, resume func()
}

// pauseOthers pauses the workload clusters while their management cluster changes. They keep
// running. Clusters that are paused already stay so. Flux is suspended first, so that it neither
// reverts nor repeats what is changed and moved.
func (m *Management) pauseOthers(ctx context.Context, p *phase.Progress) error {
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	suspended, err := m.suspendFlux(ctx, p, w)
	if err != nil {
		return err
	}
	paused, err := m.pauseClusters(ctx, p, w)
	if err == nil && len(suspended)+len(paused) == 0 {
		return phase.Skip("no workload clusters to pause")
	}
	return err
}

// pauseClusters pauses the workload clusters, and returns those that it has paused, now or earlier.
func (m *Management) pauseClusters(ctx context.Context, p *phase.Progress, w *Workload) (paused []string, err error) {
	all, err := m.others(ctx, w)
	if err != nil {
		return nil, err
	}
	if _, err := p.Kept(keptClusters, &paused); err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.paused {
			continue
		}
		if !slices.Contains(paused, h.name) {
			paused = append(paused, h.name)
			// Recorded first: an entry without a pause is harmless, a pause without an entry stays.
			if err := p.Keep(keptClusters, paused); err != nil {
				return nil, err
			}
		}
		if err := h.change(ctx, w.plane.Client, h.pause); err != nil {
			return nil, err
		}
	}
	return paused, nil
}

// resumeOthers resumes exactly the clusters that were paused, and Flux. With GitOps, it waits until
// Flux has applied the new spec.
func (m *Management) resumeOthers(ctx context.Context, p *phase.Progress) error {
	record, err := gitRecordOf(p)
	if err != nil {
		return err
	}
	var paused, suspended []string
	_, pausedErr := p.Kept(keptClusters, &paused)
	_, suspendedErr := p.Kept(keptSuspended, &suspended)
	if err := errors.Join(pausedErr, suspendedErr); err != nil {
		return err
	}
	if len(paused)+len(suspended) == 0 && record.Change == "" {
		return phase.Skip("nothing was paused")
	}
	w, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	if err := m.resumeClusters(ctx, p, w); err != nil {
		return err
	}
	if err := m.resumeFlux(ctx, p, w, fluxSource, fluxApplication); err != nil {
		return err
	}
	_, err = w.verify(ctx, p, applied)
	return err
}

// resumeClusters resumes exactly the clusters that were paused.
func (m *Management) resumeClusters(ctx context.Context, p *phase.Progress, w *Workload) error {
	var paused []string
	if _, err := p.Kept(keptClusters, &paused); err != nil || len(paused) == 0 {
		return err
	}
	all, err := m.others(ctx, w)
	if err != nil {
		return err
	}
	for _, h := range slices.Backward(all) {
		if h.paused && slices.Contains(paused, h.name) {
			if err := h.change(ctx, w.plane.Client, h.resume); err != nil {
				return err
			}
		}
	}
	return nil
}

// others returns all clusters but this one, Drover's first.
func (m *Management) others(ctx context.Context, w *Workload) ([]pausable, error) {
	var all []pausable
	ours := &anywherev1.ClusterList{}
	theirs := &clusterv1.ClusterList{}
	for _, list := range []client.ObjectList{ours, theirs} {
		if err := w.plane.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing workload clusters: %w", err)
		}
	}
	for i := range ours.Items {
		if c := &ours.Items[i]; c.Name != m.Config.Cluster.Name {
			all = append(all, pausableCluster(c))
		}
	}
	for i := range theirs.Items {
		if c := &theirs.Items[i]; c.Name != m.Config.Cluster.Name {
			all = append(all, pausable{
				c, "cluster-api/" + c.Namespace + "/" + c.Name, ptr.Deref(c.Spec.Paused, false),
				func() { c.Spec.Paused = ptr.To(true) }, func() { c.Spec.Paused = nil },
			})
		}
	}
	return all, nil
}

// pausableCluster returns how a Cluster of Drover's is paused.
func pausableCluster(c *anywherev1.Cluster) pausable {
	return pausable{
		c, "Cluster/" + c.Namespace + "/" + c.Name, c.IsPaused(),
		func() { metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.PausedAnnotation, "true") },
		func() { delete(c.Annotations, anywherev1.PausedAnnotation) },
	}
}

// change writes what edit does to the cluster. A cluster that is gone is ignored.
func (h pausable) change(ctx context.Context, c client.Client, edit func()) error {
	before := h.DeepCopyObject().(client.Object)
	edit()
	err := c.Patch(ctx, h.Object, client.MergeFrom(before), client.FieldOwner(anywherev1.FieldManagerCLI))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing whether %s is paused: %w", h.name, err)
	}
	return nil
}
