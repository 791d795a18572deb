// Package requester reports what the user of a request may do. The API server answers, by the roles
// of that user; nothing is decided by a name.
//
// Start with Reviewer.
package requester

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Reviewer asks the API server about users.
type Reviewer struct{ Client client.Client }

// MayImpersonate reports whether a user may act as another one.
func (r *Reviewer) MayImpersonate(ctx context.Context, user authenticationv1.UserInfo, as string) (bool, error) {
	return r.May(ctx, user, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: as})
}

// IsAdministrator reports whether the user of the request in ctx may create objects of a resource
// in all namespaces. The users of a namespace may create them there at most.
func (r *Reviewer) IsAdministrator(ctx context.Context, resource schema.GroupResource) (bool, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false, fmt.Errorf("finding the user of a request: %w", err)
	}
	return r.May(ctx, request.UserInfo, authorizationv1.ResourceAttributes{Verb: "create", Group: resource.Group, Resource: resource.Resource})
}

// May reports whether a user may do something.
func (r *Reviewer) May(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra(user), ResourceAttributes: &what,
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether user %q may %s %s: %w", user.Username, what.Verb, what.Resource, err)
	}
	return review.Status.Allowed, nil
}

func extra(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	out := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		out[key] = authorizationv1.ExtraValue(values)
	}
	return out
}
