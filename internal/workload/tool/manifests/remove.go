package manifests

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

// remove deletes the objects in reverse order, and the record last, because it lists what is left.
// It first records that the installation is being uninstalled, so that a partial one is not
// mistaken for a complete one.
func (o *operation) remove(ctx context.Context, rec *record) error {
	if rec.broken {
		return &tool.TerminalError{Err: fmt.Errorf("record of installation %q is unreadable; delete its objects and Secret %q manually",
			o.want.ID.Name, o.records.name())}
	}
	if rec.Status != tool.Uninstalling {
		rec.Status = tool.Uninstalling
		if err := o.records.write(ctx, rec); err != nil {
			return err
		}
	}
	limited, cancel := o.withTimeout(ctx)
	defer cancel()
	if err := o.prune(limited, append(rec.all(), rec.leftovers()...), nil); err != nil {
		return err
	}
	return o.records.remove(ctx)
}

// prune deletes the objects in all that are not in keep.
func (o *operation) prune(ctx context.Context, all, keep []*object) error {
	obsolete, err := o.obsolete(all, keep)
	if err != nil {
		return err
	}
	for _, group := range objects.Groups(obsolete) {
		if err := objects.InParallel(ctx, group, o.writer().delete); err != nil {
			return err
		}
	}
	return nil
}

// obsolete returns the objects in all that are not in keep and whose kinds exist, each once, in the
// order of deletion.
func (o *operation) obsolete(all, keep []*object) ([]*object, error) {
	if _, err := objects.LocateSome(all, o.cluster.Mapper(), o.want.ID.Namespace); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, one := range keep {
		seen[one.Identity()] = true
	}
	var out []*object
	for _, one := range all {
		if one.Known() && !seen[one.Identity()] {
			seen[one.Identity()] = true
			out = append(out, one)
		}
	}
	objects.Sort(out)
	slices.Reverse(out)
	return out, nil
}

// delete deletes an object that the installation owns and that has no keep annotation. It waits for
// custom objects with finalizers, because the controller that removes those may be deleted next.
func (w *writer) delete(ctx context.Context, o *object) error {
	live, err := w.deletable(ctx, o)
	if live == nil || err != nil {
		return err
	}
	background, uid := metav1.DeletePropagationBackground, live.GetUID()
	err = w.Client(&o.Object).Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return w.Failed("deleting", &o.Object, err)
	}
	if len(live.GetFinalizers()) == 0 || !objects.Custom(o.GetKind()) {
		return nil
	}
	if err := objects.AwaitGone(ctx, w.Client(&o.Object), live); err != nil {
		return fmt.Errorf("waiting for %s to be gone: %w", o.Title(), err)
	}
	return nil
}

// deletable reads an object. It returns nil if there is nothing to delete.
func (w *writer) deletable(ctx context.Context, o *object) (*unstructured.Unstructured, error) {
	if kept(o.Unstructured) || w.isReleaseNamespace(o) {
		return nil, nil // nothing to delete
	}
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // nothing to delete
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.Title(), err)
	}
	if kept(live) || !w.owns(live) {
		return nil, nil // nothing to delete
	}
	return live, nil
}

func kept(u *unstructured.Unstructured) bool {
	return strings.EqualFold(u.GetAnnotations()[KeepAnnotation], "true")
}
