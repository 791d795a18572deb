package admission

import (
	"context"
	"errors"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	clusters "github.com/drover-dev/drover/internal/controllers/clusters/admission"
	"github.com/drover-dev/drover/internal/controllers/gitops/content"
	"github.com/drover-dev/drover/internal/model/spec"
)

// checkRemove checks that the user may delete the Cluster.
func (r *rules) checkRemove(ctx context.Context, change *droverv1.GitChange, user authenticationv1.UserInfo) error {
	if len(change.Spec.Objects) > 0 {
		return invalid("spec.objects: must be empty if spec.action is Remove")
	}
	cluster, err := r.cluster(ctx, change)
	if err != nil {
		return err
	}
	if cluster != nil {
		if err := r.checkManagement(ctx, cluster); err != nil {
			return err
		}
	}
	return r.may(ctx, user, "delete", change.Namespace, objectRef{clusterResource, change.Spec.Cluster})
}

// checkWrite checks the objects, and that the user may create and update each of them.
func (r *rules) checkWrite(ctx context.Context, change *droverv1.GitChange, user authenticationv1.UserInfo) (admission.Warnings, error) {
	config, err := content.Read(ctx, r.reader, change)
	var problems spec.Violations
	switch {
	case errors.As(err, &problems):
		return nil, invalid(problems.Error())
	case err != nil:
		return nil, err
	}
	warnings := config.Warnings
	spec.Default(config)
	if problems, err = r.validate(ctx, change, config); err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, invalid(problems.Error())
	}
	if err := r.checkManagement(ctx, config.Cluster); err != nil {
		return nil, err
	}
	for _, o := range config.Objects() {
		if err := r.checkObject(ctx, user, o); err != nil {
			return nil, err
		}
	}
	return warnings, nil
}

// validate applies the rules of a new or an updated spec.
func (r *rules) validate(ctx context.Context, change *droverv1.GitChange, config *spec.Config) (spec.Violations, error) {
	problems := spec.Validate(config)
	was, err := r.cluster(ctx, change)
	switch {
	case err != nil:
		return nil, err
	case was == nil:
		return append(problems, spec.ValidateNew(config.Cluster)...), nil
	default:
		return append(problems, spec.ValidateUpdate(was, config.Cluster)...), nil
	}
}

// checkManagement keeps the directory of a management cluster, which is applied with the privileges
// of an administrator, from others.
func (r *rules) checkManagement(ctx context.Context, c *anywherev1.Cluster) error {
	if !c.IsSelfManaged() {
		return nil
	}
	administrator, err := r.users.IsAdministrator(ctx, schema.GroupResource{Group: anywherev1.GroupVersion.Group, Resource: clusterResource})
	if err != nil || administrator {
		return err
	}
	return denial("only administrators may change the files of management cluster %q; set spec.managementCluster of a workload cluster", c.Name)
}

// checkObject checks the annotations of an object, and what the user may do to it. Flux may create
// it again at any time, so an update alone is not enough.
func (r *rules) checkObject(ctx context.Context, user authenticationv1.UserInfo, o client.Object) error {
	if err := clusters.Reserved(ctx, r.users, o); err != nil {
		return err
	}
	ref := objectRef{strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind) + "s", o.GetName()}
	for _, verb := range []string{"create", "update"} {
		if err := r.may(ctx, user, verb, o.GetNamespace(), ref); err != nil {
			return err
		}
	}
	return nil
}

// clusterResource is the resource of Clusters.
const clusterResource = "clusters"

// objectRef is a resource of the API group of clusters, and the name of an object.
type objectRef struct{ resource, name string }

// may denies what the user may not do directly.
func (r *rules) may(ctx context.Context, user authenticationv1.UserInfo, verb, namespace string, o objectRef) error {
	allowed, err := r.users.May(ctx, user, authorizationv1.ResourceAttributes{
		Verb: verb, Group: anywherev1.GroupVersion.Group, Resource: o.resource, Namespace: namespace, Name: o.name,
	})
	if err != nil || allowed {
		return err
	}
	return denial("user %q may not %s %s %q in namespace %q, and a GitChange grants nothing; ask an administrator for a role", user.Username, verb, o.resource, o.name, namespace)
}

// cluster returns the Cluster of a change, or nil if it doesn't exist.
func (r *rules) cluster(ctx context.Context, change *droverv1.GitChange) (*anywherev1.Cluster, error) {
	found := &anywherev1.Cluster{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: change.Namespace, Name: change.Spec.Cluster}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}
