package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Checkpoint keys of a pause, so that exactly the paused objects are resumed, also by a later run.
const (
	keptPaused = "paused"
	keptFlux   = "flux-disabled"
)

// Flux does not reconcile objects with this annotation.
const (
	fluxAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
	fluxDisabled   = "disabled"
)

// pause pauses the cluster while several of its objects change, so that machines are replaced once
// and not once per object. It keeps the user's own Flux from reverting the change, which is not in
// Git. A change that goes through Git pauses nothing: it must not depend on a Git server to resume.
func (w *Workload) pause(ctx context.Context, p *phase.Progress) error {
	r, err := w.connectGit(ctx, p)
	if err != nil {
		return err
	}
	if r.isGit() {
		return phase.Skip("the change goes through Git")
	}
	gitOps := w.Config.Cluster.Spec.GitOpsRef != nil
	several := w.changedObjects() > 1
	switch {
	case gitOps:
		if err := w.disableFlux(ctx, p); err != nil {
			return err
		}
	case !several:
		return phase.Skip("at most one object changes, and GitOps is not configured")
	}
	if !several {
		return nil
	}
	live, err := w.live(ctx)
	if err != nil {
		return err
	}
	if live.IsPaused() {
		return nil
	}
	// Recorded first: an entry without a pause is harmless, a pause without an entry stays.
	if err := p.Keep(keptPaused, true); err != nil {
		return err
	}
	return annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.PausedAnnotation: "true"})
}

// unpause resumes the cluster if pause paused it.
func (w *Workload) unpause(ctx context.Context, p *phase.Progress) error {
	ours := false
	if _, err := p.Kept(keptPaused, &ours); err != nil || !ours {
		return err
	}
	live, err := w.live(ctx)
	if err != nil {
		return err
	}
	if err := annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.PausedAnnotation: ""}); err != nil {
		return err
	}
	return p.Keep(keptPaused, false)
}

// disableFlux excludes the cluster's objects from Flux, and keeps which ones it excluded.
func (w *Workload) disableFlux(ctx context.Context, p *phase.Progress) error {
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

// resume includes exactly those objects again that disableFlux excluded.
func (w *Workload) resume(ctx context.Context, p *phase.Progress) error {
	var disabled []string
	if _, err := p.Kept(keptFlux, &disabled); err != nil {
		return err
	}
	if len(disabled) == 0 {
		return phase.Skip("nothing was paused")
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

// annotate sets annotations, and removes those without a value.
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
