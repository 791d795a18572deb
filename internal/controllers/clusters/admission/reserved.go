package admission

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
)

// clusterResource is the resource that administrators may create in all namespaces.
func clusterResource() schema.GroupResource {
	return schema.GroupResource{Group: anywherev1.GroupVersion.Group, Resource: "clusters"}
}

// Reserved rejects a new object with annotations that exempt it from rules, unless an administrator
// creates it: moving a Cluster and creating a management cluster need them.
func Reserved(ctx context.Context, users *requester.Reviewer, o client.Object) error {
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

// keepsFinalizer rejects the removal of the finalizer of a Cluster, unless it is the controller's,
// which may update finalizers, or an administrator's, which moving a Cluster requires. Without the
// finalizer, packages and permissions of the Cluster would wait for the next one of its name.
func (r *clusterRules) keepsFinalizer(ctx context.Context, was, is *anywherev1.Cluster) error {
	if !controllerutil.ContainsFinalizer(was, anywherev1.ClusterFinalizer) || controllerutil.ContainsFinalizer(is, anywherev1.ClusterFinalizer) {
		return nil
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	may, err := r.users.May(ctx, request.UserInfo, authorizationv1.ResourceAttributes{
		Verb: "update", Group: anywherev1.GroupVersion.Group, Resource: "clusters", Subresource: "finalizers", Namespace: is.Namespace, Name: is.Name,
	})
	if err == nil && !may {
		may, err = r.users.IsAdministrator(ctx, clusterResource())
	}
	if err != nil || may {
		return err
	}
	return rejection("metadata.finalizers: only administrators may remove %s; it is removed when all machines of cluster %s are deleted", anywherev1.ClusterFinalizer, is.Name)
}
