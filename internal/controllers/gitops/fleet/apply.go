package fleet

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner owns the fields that are applied.
const FieldOwner = "drover-gitops"

// ManagedByLabel with the value ManagedBy marks the objects of Flux that Drover created.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "drover"
)

// Apply writes the fields of an object that are set, and no others. The object needs its kind.
func Apply(ctx context.Context, c client.Client, o client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: content}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", u.GetKind(), client.ObjectKeyFromObject(o), err)
	}
	return nil
}
