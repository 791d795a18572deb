package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// configRules are those for what a Cluster names.
type configRules[T client.Object] struct {
	// spec is what of an object is looked at; nil if there is nothing.
	spec func(T) any
	// fixed says that it can't be changed; nil if it can.
	fixed func(client.Object) bool
	// more is what else a new object must be; nil if there is nothing.
	more func(context.Context, T) error
}

func always(client.Object) bool { return true }

// ofManagement says that an object is not a workload cluster's.
func ofManagement(o client.Object) bool {
	return o.GetAnnotations()[anywherev1.ManagedByAnnotation] == ""
}

// ValidateCreate checks a new object.
func (r *configRules[T]) ValidateCreate(ctx context.Context, o T) (admission.Warnings, error) {
	if wrong := spec.ValidateObject(o); len(wrong) > 0 {
		return nil, invalid(wrong.Error())
	}
	if r.more != nil {
		return nil, r.more(ctx, o)
	}
	return nil, nil
}

// ValidateUpdate checks a changed object. While it is paused, as when it moves or a command is at work, everything can be changed.
func (r *configRules[T]) ValidateUpdate(ctx context.Context, was, is T) (admission.Warnings, error) {
	if !is.GetDeletionTimestamp().IsZero() || r.spec == nil || equality.Semantic.DeepEqual(r.spec(was), r.spec(is)) {
		return nil, nil
	}
	if paused := was.GetAnnotations()[anywherev1.PausedAnnotation] == "true"; !paused && r.fixed != nil && r.fixed(was) {
		return nil, invalid("spec: Forbidden: config is immutable; make another object under another name")
	}
	return r.ValidateCreate(ctx, is)
}

// ValidateDelete refuses nothing: a Cluster tells what it misses.
func (r *configRules[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}
