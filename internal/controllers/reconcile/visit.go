package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Opening is how reconciles of one kind begin. Only Client is required.
type Opening[T client.Object] struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Skip reports whether to leave the object alone for now: because it is paused, or has no owner
	// yet. What ends that must be an event.
	Skip func(context.Context, T) (bool, error)
	// Finalizer is added before the first step, unless the object is being deleted. Controllers
	// that need it later call Visit.AddFinalizer from a step.
	Finalizer string
	// Forget drops what the controller remembers of an object that is gone.
	Forget func(client.ObjectKey)
}

// Open reads the object into empty and returns its Visit, or nil if there is nothing to do.
func (o Opening[T]) Open(ctx context.Context, key client.ObjectKey, empty T) (*Visit[T], error) {
	if err := o.Client.Get(ctx, key, empty); err != nil {
		if apierrors.IsNotFound(err) && o.Forget != nil {
			o.Forget(key)
		}
		return nil, client.IgnoreNotFound(err)
	}
	if o.Skip != nil {
		if skip, err := o.Skip(ctx, empty); err != nil || skip {
			return nil, err
		}
	}
	v := NewVisit(o.Client, empty)
	if o.Finalizer == "" || v.Deleting() {
		return v, nil
	}
	if err := v.AddFinalizer(ctx, o.Finalizer); err != nil {
		return nil, err
	}
	return v, nil
}

// Visit is one reconcile of one object. Steps change Object; Save and Close write the difference.
type Visit[T client.Object] struct {
	Object T

	client client.Client
	before T
}

// NewVisit begins a visit of an object that was read already and that the caller may change.
func NewVisit[T client.Object](c client.Client, object T) *Visit[T] {
	v := &Visit[T]{Object: object, client: c}
	v.remember()
	return v
}

// Before is the object as it was read or last written. It must not be changed.
func (v *Visit[T]) Before() T { return v.before }

// Key is the object's namespace and name.
func (v *Visit[T]) Key() client.ObjectKey { return client.ObjectKeyFromObject(v.Object) }

// Deleting reports whether the object is being deleted.
func (v *Visit[T]) Deleting() bool { return !v.Object.GetDeletionTimestamp().IsZero() }

// AddFinalizer writes a finalizer if the object lacks it. It must be there before anything is
// created that the finalizer is to clean up.
func (v *Visit[T]) AddFinalizer(ctx context.Context, finalizer string) error {
	if !controllerutil.AddFinalizer(v.Object, finalizer) {
		return nil
	}
	return v.Save(ctx)
}

// Released reports whether the object is being deleted and has none of the finalizer left, so that
// there is nothing to write any more.
func (v *Visit[T]) Released(finalizer string) bool {
	return v.Deleting() && !controllerutil.ContainsFinalizer(v.Object, finalizer)
}

// Save writes what has changed so far: for a step that must not continue before that is safe. It
// fails with a conflict if the object changed since it was read.
func (v *Visit[T]) Save(ctx context.Context) error {
	if equality.Semantic.DeepEqual(v.before, v.Object) {
		return nil
	}
	change, err := v.diff()
	if err != nil {
		return err
	}
	if change.object != nil {
		if err := v.patch(ctx, v.client, change.object); err != nil {
			return fmt.Errorf("updating %q: %w", v.Key(), err)
		}
	}
	if change.status != nil {
		if err := v.patch(ctx, statusWriter{v.client.Status()}, change.status); err != nil {
			return fmt.Errorf("updating the status of %q: %w", v.Key(), err)
		}
	}
	v.remember()
	return nil
}

// Close saves the object and maps the outcome of its steps to a result. An object that is gone
// needs no status.
func (v *Visit[T]) Close(ctx context.Context, outcome error, next time.Duration) (ctrl.Result, error) {
	saved := v.Save(ctx)
	if apierrors.IsNotFound(saved) {
		saved = nil
	}
	if saved != nil && isOutcome(outcome) {
		outcome = nil // it was not written down, so it has to be found again
	}
	return Result(errors.Join(outcome, saved), next)
}

func (v *Visit[T]) remember() { v.before = v.Object.DeepCopyObject().(T) } // a copy is of the same type

// change is a pair of merge patches, nil where nothing differs.
type change struct{ object, status map[string]any }

// diff splits what has changed. The patch of a status holds all its fields, not only those that
// differ: fields that the schema requires may have been absent so far, and have no zero value
// there.
func (v *Visit[T]) diff() (change, error) {
	data, err := client.MergeFrom(v.before).Data(v.Object)
	if err != nil {
		return change{}, fmt.Errorf("comparing %q: %w", v.Key(), err)
	}
	c := change{object: map[string]any{}}
	if err := json.Unmarshal(data, &c.object); err != nil {
		return change{}, fmt.Errorf("comparing %q: %w", v.Key(), err)
	}
	differs, ok := c.object["status"].(map[string]any)
	delete(c.object, "status")
	if len(c.object) == 0 {
		c.object = nil
	}
	if !ok {
		return c, nil
	}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v.Object)
	if err != nil {
		return change{}, fmt.Errorf("comparing %q: %w", v.Key(), err)
	}
	status, _ := whole["status"].(map[string]any)
	c.status = map[string]any{"status": withRemovals(status, differs)}
	return c, nil
}

// withRemovals adds the nulls of a merge patch to what should be there.
func withRemovals(wanted, patch map[string]any) map[string]any {
	if wanted == nil {
		wanted = map[string]any{}
	}
	for field, value := range patch {
		switch value := value.(type) {
		case nil:
			wanted[field] = nil
		case map[string]any:
			if below, ok := wanted[field].(map[string]any); ok {
				wanted[field] = withRemovals(below, value)
			}
		}
	}
	return wanted
}

type patcher interface {
	Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error
}

// statusWriter makes the status subresource a patcher.
type statusWriter struct{ client.SubResourceWriter }

// Patch implements patcher.
func (w statusWriter) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return w.SubResourceWriter.Patch(ctx, o, p)
}

// patch writes with an optimistic lock. Only the version of the answer is taken over: it knows
// nothing of what was changed here and has yet to be written.
func (v *Visit[T]) patch(ctx context.Context, to patcher, changes map[string]any) error {
	metadata, _ := changes["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		changes["metadata"] = metadata
	}
	metadata["resourceVersion"] = v.Object.GetResourceVersion()
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	answer := v.Object.DeepCopyObject().(T) // a copy is of the same type
	if err := to.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	v.Object.SetResourceVersion(answer.GetResourceVersion())
	v.Object.SetGeneration(answer.GetGeneration())
	return nil
}
