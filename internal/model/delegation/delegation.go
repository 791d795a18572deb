// Package delegation answers whose permissions an add-on or a package has on the management plane:
// which namespaces belong to tenants, who must name a service account there, and what an account
// may read.
//
// It impersonates nobody, which would require a permission to become any account. It asks the API
// server whether the account may, and remembers the answer for a while, so that objects that don't
// change cost no request. Start with Policy.
package delegation

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long an answer is valid, and how many are kept. A denial is short, because a user waits for
// an administrator to grant the permission.
const (
	allowedFor = 10 * time.Minute
	// DeniedFor is how long a denial is valid.
	DeniedFor = 30 * time.Second
	keep      = 4096
)

// Creator creates reviews.
type Creator interface {
	Create(ctx context.Context, o client.Object, options ...client.CreateOption) error
}

// Options configure a Policy.
type Options struct {
	// Tenants selects the namespaces that require a service account; nil selects none. System
	// namespaces are never selected.
	Tenants labels.Selector
	System  []string
	// Namespaces reads the metadata of namespaces from a cache, and Live from the API server what
	// the cache doesn't have yet.
	Namespaces, Live client.Reader
	Reviews          Creator
	Clock            clock.PassiveClock
}

// Policy decides. A nil Policy selects no tenants, and accounts may read nothing.
type Policy struct {
	Options

	answers *lru.Cache // question → answer
}

// New returns a Policy that has asked nothing yet.
func New(o Options) *Policy { return &Policy{Options: o, answers: lru.New(keep)} }

// Requires reports whether add-ons and packages in a namespace must name a service account.
func (p *Policy) Requires(ctx context.Context, namespace string) (bool, error) {
	if p == nil || p.Tenants == nil || slices.Contains(p.System, namespace) {
		return false, nil
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := p.Namespaces.Get(ctx, client.ObjectKey{Name: namespace}, meta, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		err = p.Live.Get(ctx, client.ObjectKey{Name: namespace}, meta)
	}
	if err != nil {
		return false, fmt.Errorf("reading the labels of namespace %q: %w", namespace, err)
	}
	return p.Tenants.Matches(labels.Set(meta.Labels)), nil
}

// RequireAccount returns a DeniedError if an object in a namespace must name a service account and
// names none.
func (p *Policy) RequireAccount(ctx context.Context, namespace, account string) error {
	if account != "" {
		return nil
	}
	required, err := p.Requires(ctx, namespace)
	if err != nil || !required {
		return err
	}
	return &DeniedError{fmt.Sprintf("namespace %q requires serviceAccountName; name a ServiceAccount of this namespace", namespace)}
}

// DeniedError reports that something is not permitted. A user or an administrator must act.
type DeniedError struct{ Message string }

func (e *DeniedError) Error() string { return e.Message }

type question struct {
	account  client.ObjectKey
	resource schema.GroupResource
	object   client.ObjectKey
}

type answer struct {
	allowed bool
	until   time.Time
}

// MayGet returns a DeniedError if an account may not get an object.
func (p *Policy) MayGet(ctx context.Context, account client.ObjectKey, resource schema.GroupResource, object client.ObjectKey) error {
	q := question{account, resource, object}
	allowed, err := p.ask(ctx, q)
	if err != nil {
		return fmt.Errorf("checking the permissions of service account %q: %w", account, err)
	}
	if allowed {
		return nil
	}
	return &DeniedError{fmt.Sprintf("service account %q may not get %s %q; ask an administrator to grant it", account, resource, object)}
}

func (p *Policy) ask(ctx context.Context, q question) (bool, error) {
	if p == nil {
		return false, nil
	}
	now := p.Clock.Now()
	if known, ok := p.answers.Get(q); ok {
		if a, _ := known.(answer); now.Before(a.until) {
			return a.allowed, nil
		}
	}
	review := q.review()
	if err := p.Reviews.Create(ctx, review); err != nil {
		return false, err
	}
	a := answer{allowed: review.Status.Allowed, until: now.Add(DeniedFor)}
	if a.allowed {
		a.until = now.Add(allowedFor)
	}
	p.answers.Add(q, a)
	return a.allowed, nil
}

func (q question) review() *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   User(q.account.Namespace, q.account.Name),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + q.account.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Group: q.resource.Group, Resource: q.resource.Resource, Namespace: q.object.Namespace, Name: q.object.Name,
		},
	}}
}

// User returns the user name of a service account, on the management plane and on clusters. It is
// empty without an account.
func User(namespace, account string) string {
	if account == "" {
		return ""
	}
	return "system:serviceaccount:" + namespace + ":" + account
}
