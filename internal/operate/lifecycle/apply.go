package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/tracing"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// kindOf returns the kind of an object, for messages.
func kindOf(c client.Client, o client.Object) string {
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	return gvk.Kind
}

// manifest returns an object as it is applied: what the user specified, and nothing else.
func manifest(c client.Client, o client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", gvk.Kind, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	u.Object["metadata"] = map[string]any{}
	u.SetName(o.GetName())
	u.SetNamespace(o.GetNamespace())
	u.SetLabels(o.GetLabels())
	u.SetAnnotations(o.GetAnnotations())
	return u, nil
}

// apply creates or changes an object, and returns what it became. Fields that the spec does not
// mention and others set stay.
func apply(ctx context.Context, c client.Client, o client.Object) (*unstructured.Unstructured, error) {
	u, err := manifest(c, o)
	if err != nil {
		return nil, err
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(anywherev1.FieldManagerCLI), client.ForceOwnership); err != nil {
		return nil, rejected(kindOf(c, o), o.GetName(), err)
	}
	if cluster, ok := o.(*anywherev1.Cluster); ok {
		return u, followTrace(ctx, c, cluster)
	}
	return u, nil
}

// traceOwner owns the annotation of a trace, so that applying a spec does not remove it.
const traceOwner = client.FieldOwner("drover-trace")

// followTrace annotates a Cluster with this command's trace, if it has one, so that the controllers
// continue it.
func followTrace(ctx context.Context, c client.Client, cluster *anywherev1.Cluster) error {
	parent := tracing.Parent(ctx)
	if parent == "" {
		return nil
	}
	target := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, anywherev1.TraceAnnotation, parent)
	err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(patch)), traceOwner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating Cluster %q with the trace: %w", cluster.Name, err)
	}
	return nil
}

// rejected returns why an object was rejected, without the text that the API server adds.
func rejected(kind, name string, err error) error {
	if reason, denied := inspect.Rejection(err); denied {
		return fmt.Errorf("%s %q was rejected: %s", kind, name, reason)
	}
	return fmt.Errorf("applying %s %q: %w", kind, name, err)
}

// ensureNamespace creates the namespace unless it exists.
func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if err == nil || apierrors.IsForbidden(err) {
		return nil // Whoever may not read namespaces was given one.
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading namespace %q: %w", name, err)
	}
	err = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", name, err)
	}
	return nil
}
