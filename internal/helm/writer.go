package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	obj "github.com/drover-dev/drover/internal/addons/objects"
	"github.com/drover-dev/drover/internal/addons/tool"
	"github.com/drover-dev/drover/internal/workload"
)

const (
	// fieldManager is the helm command's, so that either can go on with what the other made.
	fieldManager = "helm"
	// absent as a resource version lets an API server make an object, and refuse to change one: no object has ever had it, as the server's
	// own first writes come before.
	absent = "1"
)

// writer puts objects of one release onto a cluster.
type writer struct {
	cluster *workload.Cluster
	owner   tool.ID
	options addonsv1.HelmOptions
	ignore  []addonsv1.IgnoreRule
	values  map[string]any

	mu      sync.Mutex
	created []*object
}

func (w *writer) client(o *object) dynamic.ResourceInterface {
	return w.cluster.Dynamic().Resource(o.Resource).Namespace(o.GetNamespace())
}

// applyAll writes objects in their order.
func (w *writer) applyAll(ctx context.Context, objects []*object) error {
	for _, group := range obj.Groups(objects) {
		if err := obj.InParallel(ctx, group, w.apply); err != nil {
			return err
		}
		if group[0].GetKind() == obj.CRDKind {
			if err := obj.AwaitEstablished(ctx, w.cluster, group); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) apply(ctx context.Context, o *object) error {
	err := w.applyOne(ctx, o)
	if err == nil {
		return nil
	}
	return obj.Classify(fmt.Errorf("applying %s: %w", o.Title(), obj.Redact(err, w.values)))
}

// applyOne writes an object with one request if it can: most objects of a first revision are not there, and most of a later one are ours.
func (w *writer) applyOne(ctx context.Context, o *object) error {
	if !o.Known() {
		if err := o.Locate(w.cluster.Mapper(), w.owner.Namespace); err != nil {
			return err
		}
	}
	o.claim(w.owner)
	if !o.ours {
		err := w.create(ctx, o)
		if !apierrors.IsConflict(err) {
			return err
		}
	} else if !o.clientSide && !w.options.Upgrade.Force && len(obj.Pointers(w.ignore, o.Unstructured)) == 0 {
		return w.patch(ctx, o, o.Unstructured)
	}
	return w.onto(ctx, o)
}

// create makes an object that is not there. It fails with a conflict if it is.
func (w *writer) create(ctx context.Context, o *object) error {
	fresh := o.DeepCopy()
	fresh.SetResourceVersion(absent)
	if err := w.patch(ctx, o, fresh); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created = append(w.created, o)
	return nil
}

// onto writes an object after a look at what is there.
func (w *writer) onto(ctx context.Context, o *object) error {
	live, err := w.client(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w.patch(ctx, o, o.Unstructured)
	}
	if err != nil {
		return err
	}
	if !o.ours && !ownedBy(live, w.owner) && !w.options.TakeOwnership {
		return &tool.TerminalError{Err: errOwned(live)}
	}
	if w.options.Upgrade.Force && o.ours {
		return w.replace(ctx, o, live)
	}
	if err := takeFields(ctx, w.client(o), live); err != nil {
		return err
	}
	return w.patch(ctx, o, obj.WithLive(o.Unstructured, live, obj.Pointers(w.ignore, o.Unstructured)))
}

// errOwned says whose an object is.
func errOwned(live *unstructured.Unstructured) error {
	if name := live.GetAnnotations()[nameAnnotation]; name != "" {
		return fmt.Errorf("it belongs to release %q", live.GetAnnotations()[namespaceAnnotation]+"/"+name)
	}
	return errors.New("it is there already and belongs to no release; takeOwnership would adopt it")
}

// patch applies a body for an object. All of its fields become ours, whoever had them.
func (w *writer) patch(ctx context.Context, o *object, body *unstructured.Unstructured) error {
	_, err := w.patched(ctx, o, body, metav1.PatchOptions{})
	return err
}

func (w *writer) patched(
	ctx context.Context, o *object, body *unstructured.Unstructured, options metav1.PatchOptions,
) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	force := true
	options.Force, options.FieldManager, options.FieldValidation = &force, fieldManager, w.validation()
	return w.client(o).Patch(ctx, o.GetName(), types.ApplyPatchType, data, options)
}

func (w *writer) validation() string {
	if w.options.DisableOpenAPIValidation {
		return metav1.FieldValidationIgnore
	}
	return metav1.FieldValidationStrict
}

// replace is what force asks for: nothing of what is there stays, except for what the API server itself keeps.
func (w *writer) replace(ctx context.Context, o *object, live *unstructured.Unstructured) error {
	body := obj.WithLive(o.Unstructured, live, obj.Pointers(w.ignore, o.Unstructured)).DeepCopy()
	body.SetResourceVersion(live.GetResourceVersion())
	_, err := w.client(o).Update(ctx, body, metav1.UpdateOptions{FieldManager: fieldManager, FieldValidation: w.validation()})
	return err
}

// removeAll deletes objects with one of the ways to do so, each run of a kind before the next.
func (w *writer) removeAll(ctx context.Context, objects []*object, remove func(context.Context, *object) error) error {
	for _, group := range obj.Groups(objects) {
		if err := obj.InParallel(ctx, group, remove); err != nil {
			return err
		}
	}
	return nil
}

// prune deletes an object that the release has no more. What is to be kept, gone, or meanwhile belongs to another release stays as it is.
func (w *writer) prune(ctx context.Context, o *object) error {
	if kept(o.Unstructured) {
		return nil
	}
	live, err := w.client(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	if err == nil && !kept(live) && !ownedByOther(live, w.owner) {
		err = w.client(o).Delete(ctx, o.GetName(), deletion(live.GetUID()))
	}
	return w.removed(o, err)
}

// uninstall deletes an object together with its release. Whose it is may be known from a watch; otherwise it is read.
func (w *writer) uninstall(ctx context.Context, o *object) error {
	live := w.cluster.Follow(watchOf(o)).Get(o.GetNamespace(), o.GetName())
	if live == nil || kept(o.Unstructured) {
		return w.prune(ctx, o)
	}
	if ownedByOther(live, w.owner) {
		return nil
	}
	err := w.client(o).Delete(ctx, o.GetName(), deletion(live.GetUID()))
	if apierrors.IsConflict(err) { // another has come in its place
		return w.prune(ctx, o)
	}
	return w.removed(o, err)
}

func (w *writer) removed(o *object, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return obj.Classify(fmt.Errorf("deleting %s: %w", o.Title(), obj.Redact(err, w.values)))
}

// watchOf is the watch of an object's kind.
func watchOf(o *object) workload.Watch {
	return workload.Watch{Resource: o.Resource, Selector: managedByLabel + "=" + managedByHelm}
}

// deletion takes what depends on an object with it, and nothing that has come in its place.
func deletion(uid types.UID) metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	return o
}
