package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// allowedCredentials rejects a reference to a Secret that the namespace may not use as credentials.
// The controller checks Secrets that do not exist yet, and objects that are being moved.
func allowedCredentials(live client.Reader) func(context.Context, *anywherev1.PacketDatacenterConfig) error {
	return func(ctx context.Context, d *anywherev1.PacketDatacenterConfig) error {
		if d.Annotations[anywherev1.PausedAnnotation] == "true" {
			return nil
		}
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := live.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: d.CredentialsName()}, secret)
		if err != nil {
			if client.IgnoreNotFound(err) == nil {
				return nil
			}
			return fmt.Errorf("reading the metadata of Secret %q: %w", d.CredentialsName(), err)
		}
		if problem := spec.DenyCredentials(secret, d.Namespace); problem != "" {
			return invalid("spec.credentialsRef.name: " + problem)
		}
		return nil
	}
}
