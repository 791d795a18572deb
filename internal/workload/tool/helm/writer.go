package helm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// fieldManager is the helm command's, so that both can manage the same release.
const fieldManager = "helm"

// writer writes the objects of one release.
type writer struct {
	obj.Writer

	mu      sync.Mutex
	created []*object
}

// applyAll writes objects in order.
func (w *writer) applyAll(ctx context.Context, objects []*object) error {
	return obj.WriteAll(ctx, &w.Writer, objects, func(ctx context.Context, o *object) error {
		return w.Failed("applying", &o.Object, w.applyOne(ctx, o))
	})
}

// applyOne writes an object with one request if possible: usually the objects of a first revision
// do not exist, and those of a later one are owned.
func (w *writer) applyOne(ctx context.Context, o *object) error {
	if !o.Known() {
		if err := o.Locate(w.Cluster.Mapper(), w.Want.ID.Namespace); err != nil {
			return err
		}
	}
	o.claim(w.Want.ID)
	if !o.owned {
		err := w.create(ctx, o)
		if !apierrors.IsConflict(err) {
			return err
		}
	} else if !o.clientSide && !w.Want.Options.Upgrade.Force && len(w.Ignored(&o.Object)) == 0 {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	return w.applyExisting(ctx, o)
}

// create creates an object and remembers it. It fails with a conflict if the object exists.
func (w *writer) create(ctx context.Context, o *object) error {
	if err := w.Create(ctx, &o.Object); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created = append(w.created, o)
	return nil
}

// applyExisting reads an object and checks its owner before it writes.
func (w *writer) applyExisting(ctx context.Context, o *object) error {
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	if err != nil {
		return err
	}
	if !o.owned && !ownedBy(live, w.Want.ID) && !w.Want.Options.TakeOwnership {
		return &tool.TerminalError{Err: ownerError(live)}
	}
	if w.Want.Options.Upgrade.Force && o.owned {
		return w.replace(ctx, o, live)
	}
	if err := adoptFields(ctx, w.Client(&o.Object), live); err != nil {
		return err
	}
	return w.PatchOver(ctx, &o.Object, live)
}

// ownerError names the owner of an object.
func ownerError(live *unstructured.Unstructured) error {
	if name := live.GetAnnotations()[nameAnnotation]; name != "" {
		return fmt.Errorf("owned by release %q", live.GetAnnotations()[namespaceAnnotation]+"/"+name)
	}
	return errors.New("already exists and belongs to no release; set takeOwnership to adopt it")
}

// replace implements force: it keeps nothing of the existing object except what the API server
// maintains.
func (w *writer) replace(ctx context.Context, o *object, live *unstructured.Unstructured) error {
	body := obj.WithLive(o.Unstructured, live, w.Ignored(&o.Object)).DeepCopy()
	body.SetResourceVersion(live.GetResourceVersion())
	_, err := w.Client(&o.Object).Update(ctx, body, metav1.UpdateOptions{FieldManager: fieldManager, FieldValidation: w.Validation()})
	return err
}

// removeAll deletes objects with remove, one kind after the other.
func (w *writer) removeAll(ctx context.Context, objects []*object, remove func(context.Context, *object) error) error {
	for _, group := range obj.Groups(objects) {
		if err := obj.InParallel(ctx, group, remove); err != nil {
			return err
		}
	}
	return nil
}

// prune deletes an object that the release has dropped, unless it is kept, gone or owned by another
// release.
func (w *writer) prune(ctx context.Context, o *object) error {
	if kept(o.Unstructured) {
		return nil
	}
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if err == nil && !kept(live) && !ownedByOther(live, w.Want.ID) {
		err = w.Client(&o.Object).Delete(ctx, o.GetName(), deletion(live.GetUID()))
	}
	return w.removed(o, err)
}

// uninstall deletes an object with its release. It reads the object only if no watch knows its
// owner.
func (w *writer) uninstall(ctx context.Context, o *object) error {
	live := w.Cluster.Follow(watchOf(o)).Get(o.GetNamespace(), o.GetName())
	if live == nil || kept(o.Unstructured) {
		return w.prune(ctx, o)
	}
	if ownedByOther(live, w.Want.ID) {
		return nil
	}
	err := w.Client(&o.Object).Delete(ctx, o.GetName(), deletion(live.GetUID()))
	if apierrors.IsConflict(err) { // it was replaced
		return w.prune(ctx, o)
	}
	return w.removed(o, err)
}

func (w *writer) removed(o *object, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return w.Failed("deleting", &o.Object, err)
}

// watchOf returns the watch of an object's kind.
func watchOf(o *object) workload.Watch {
	return workload.Watch{Resource: o.Resource, Selector: managedByLabel + "=" + managedByHelm}
}

// deletion deletes dependents as well, but no object that has replaced this one.
func deletion(uid types.UID) metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	return o
}
