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

// allowedCredentials refuses to name a Secret that is not meant for it. One that is not there yet is waited for by the Cluster, which judges
// it then, and so it does with what is on its way from another management plane.
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
			return fmt.Errorf("reading what Secret %q is for: %w", d.CredentialsName(), err)
		}
		if problem := spec.DenyCredentials(secret, d.Namespace); problem != "" {
			return invalid("spec.credentialsRef.name: " + problem)
		}
		return nil
	}
}
