package delegation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// reviewer allows one user to read one Secret, and counts the questions.
type reviewer struct {
	allow string
	asked int
	fail  error
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r.asked++
	review, ok := o.(*authorizationv1.SubjectAccessReview)
	if !ok {
		return errors.New("not a review")
	}
	a := review.Spec.ResourceAttributes
	review.Status.Allowed = strings.Join([]string{review.Spec.User, a.Verb, a.Group, a.Resource, a.Namespace, a.Name}, " ") == r.allow
	return r.fail
}

var (
	secrets  = schema.GroupResource{Resource: "secrets"}
	account  = client.ObjectKey{Namespace: "team-a", Name: "deployer"}
	ofOthers = client.ObjectKey{Namespace: "team-b", Name: "login"}
)

func TestAnswersAreRemembered(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	r := &reviewer{}
	p := New(Options{Reviews: r, Clock: now})
	expect := func(asked int, allowed bool) {
		t.Helper()
		err := p.MayGet(t.Context(), account, secrets, ofOthers)
		if (err == nil) != allowed || r.asked != asked || err != nil && !errors.As(err, new(*DeniedError)) {
			t.Fatalf("asked %d times, want %d: %v", r.asked, asked, err)
		}
	}
	expect(1, false)
	r.allow = "system:serviceaccount:team-a:deployer get  secrets team-b login"
	expect(1, false)
	now.Step(DeniedFor)
	expect(2, true)
	now.Step(allowedFor - time.Second)
	expect(2, true)
	r.allow = ""
	now.Step(time.Second)
	expect(3, false)
	for name, other := range map[string]client.ObjectKey{"namespace": {Namespace: "team-c", Name: "login"}, "name": {Namespace: "team-b", Name: "other"}} {
		if err := p.MayGet(t.Context(), account, secrets, other); err == nil {
			t.Errorf("another %s is allowed", name)
		}
	}
}

func TestFailedReviewsAreNoDenial(t *testing.T) {
	p := New(Options{Reviews: &reviewer{fail: errors.New("unreachable")}, Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))})
	if err := p.MayGet(t.Context(), account, secrets, ofOthers); err == nil || errors.As(err, new(*DeniedError)) {
		t.Errorf("got %v", err)
	}
	var none *Policy
	if err := none.MayGet(t.Context(), account, secrets, ofOthers); !errors.As(err, new(*DeniedError)) {
		t.Errorf("without a policy: %v", err)
	}
}

func TestTenantNamespacesRequireAnAccount(t *testing.T) {
	namespace := func(name, tenant string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tenant": tenant}}}
	}
	selector, err := labels.Parse("tenant=yes")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{
		Tenants: selector, System: []string{"eksa-system"},
		Namespaces: fake.NewClientBuilder().WithObjects(namespace("team-a", "yes"), namespace("fleet", "no"), namespace("eksa-system", "yes")).Build(),
		Live:       fake.NewClientBuilder().WithObjects(namespace("new", "yes")).Build(),
	})
	for name, tc := range map[string]struct {
		namespace, account string
		denied             bool
	}{
		"a tenant":                 {"team-a", "", true},
		"a tenant with an account": {"team-a", "deployer", false},
		"a tenant that is new":     {"new", "", true},
		"others":                   {"fleet", "", false},
		"the system":               {"eksa-system", "", false},
	} {
		err := p.RequireAccount(t.Context(), tc.namespace, tc.account)
		if errors.As(err, new(*DeniedError)) != tc.denied || err != nil && !tc.denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.RequireAccount(t.Context(), "missing", ""); err == nil || errors.As(err, new(*DeniedError)) {
		t.Errorf("an unknown namespace: %v", err)
	}
}
