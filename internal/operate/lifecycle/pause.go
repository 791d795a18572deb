package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// What is kept of a pause, so that exactly what was paused is resumed, also by a later run.
const (
	keptPaused = "paused"
	keptFlux   = "flux-disabled"
)

// Flux leaves objects with this annotation alone.
const (
	fluxAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
	fluxDisabled   = "disabled"
)

// pause holds the controllers back while several objects change, so that machines are replaced once and not once for each object, and Flux
// while Git does not say yet what the objects do.
func (w *Workload) pause(ctx context.Context, p *workflow.Progress) error {
	gitOps := w.Config.Cluster.Spec.GitOpsRef != nil
	several := w.changedObjects() > 1
	switch {
	case gitOps:
		if err := w.disableFlux(ctx, p); err != nil {
			return err
		}
	case !several:
		return workflow.Skip("no GitOps is configured, and what changes changes at once")
	}
	if !several {
		return nil
	}
	live := &anywherev1.Cluster{}
	if err := w.plane.Client.Get(ctx, w.key(), live); err != nil {
		return fmt.Errorf("reading cluster %q: %w", w.key().Name, err)
	}
	if live.IsPaused() {
		return nil
	}
	// First the record: what is recorded and was not done is no harm.
	if err := p.Keep(keptPaused, true); err != nil {
		return err
	}
	return annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.PausedAnnotation: "true"})
}

// unpause lets the controllers go on, if it was us who held them back.
func (w *Workload) unpause(ctx context.Context, p *workflow.Progress) error {
	ours := false
	if _, err := p.Kept(keptPaused, &ours); err != nil || !ours {
		return err
	}
	live := &anywherev1.Cluster{}
	if err := w.plane.Client.Get(ctx, w.key(), live); err != nil {
		return fmt.Errorf("reading cluster %q: %w", w.key().Name, err)
	}
	if err := annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.PausedAnnotation: ""}); err != nil {
		return err
	}
	return p.Keep(keptPaused, false)
}

// disableFlux has Flux leave the objects of the cluster alone, those that it does not leave alone already.
func (w *Workload) disableFlux(ctx context.Context, p *workflow.Progress) error {
	var disabled []string
	if _, err := p.Kept(keptFlux, &disabled); err != nil {
		return err
	}
	for _, o := range w.Config.Objects() {
		live := o.DeepCopyObject().(client.Object) // A copy of an object is one.
		err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
		if apierrors.IsNotFound(err) || err == nil && live.GetAnnotations()[fluxAnnotation] == fluxDisabled {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s %q: %w", typeName(o), o.GetName(), err)
		}
		disabled = append(disabled, typeName(o)+"/"+o.GetName())
		if err := p.Keep(keptFlux, disabled); err != nil {
			return err
		}
		if err := annotate(ctx, w.plane.Client, live, map[string]string{fluxAnnotation: fluxDisabled}); err != nil {
			return err
		}
	}
	return nil
}

// resume has Flux look again after exactly those objects that it was kept from.
func (w *Workload) resume(ctx context.Context, p *workflow.Progress) error {
	var disabled []string
	if _, err := p.Kept(keptFlux, &disabled); err != nil {
		return err
	}
	if len(disabled) == 0 {
		return workflow.Skip("nothing was held back")
	}
	for _, o := range w.Config.Objects() {
		for _, name := range disabled {
			if name != typeName(o)+"/"+o.GetName() {
				continue
			}
			live := o.DeepCopyObject().(client.Object) // A copy of an object is one.
			if err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			if err := annotate(ctx, w.plane.Client, live, map[string]string{fluxAnnotation: ""}); err != nil {
				return err
			}
		}
	}
	return nil
}

// annotate sets annotations, or removes those without a value, and touches nothing else.
func annotate(ctx context.Context, c client.Client, o client.Object, values map[string]string) error {
	before := o.DeepCopyObject().(client.Object) // A copy of an object is one.
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range values {
		if value == "" {
			delete(annotations, key)
		} else {
			annotations[key] = value
		}
	}
	o.SetAnnotations(annotations)
	if err := c.Patch(ctx, o, client.MergeFrom(before), client.FieldOwner(anywherev1.FieldManagerCLI)); err != nil {
		return fmt.Errorf("annotating %s %q: %w", typeName(o), o.GetName(), err)
	}
	return nil
}
