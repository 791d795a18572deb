package safeconfig

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Check calls read with the strictest policy, and again with what the administrator allows in the
// namespace if that makes a difference. It reads the Namespace only then.
func Check[T any](ctx context.Context, namespaces client.Reader, namespace string, read func(Policy) (T, error)) (T, error) {
	out, err := read(Policy{})
	var insecure *InsecureError
	if !errors.As(err, &insecure) {
		return out, err
	}
	ns := &corev1.Namespace{}
	if failed := namespaces.Get(ctx, client.ObjectKey{Name: namespace}, ns); failed != nil {
		return out, fmt.Errorf("%w (reading namespace %q: %w)", err, namespace, failed)
	}
	if ns.Annotations[AllowInsecureAnnotation] != "true" {
		return out, err
	}
	return read(Policy{InsecureTLS: true})
}
