package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
)

// clusterResource is the resource that administrators may create in all namespaces.
func clusterResource() schema.GroupResource {
	return schema.GroupResource{Group: anywherev1.GroupVersion.Group, Resource: "clusters"}
}

// reserved rejects a new object with annotations that exempt it from rules, unless an administrator
// creates it: moving a Cluster and creating a management cluster need them.
func reserved(ctx context.Context, users *requester.Reviewer, o client.Object) error {
	for _, key := range []string{anywherev1.PausedAnnotation, anywherev1.ManagedByCLIAnnotation} {
		if o.GetAnnotations()[key] != "true" {
			continue
		}
		if administrator, err := users.IsAdministrator(ctx, clusterResource()); err != nil || administrator {
			return err
		}
		return rejection("metadata.annotations: only administrators may create an object with the annotation %s; remove it", key)
	}
	return nil
}
