package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
)

// reviews answers like an API server whose only administrators are in system:masters.
type reviews struct{ client.Client }

func (reviews) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review, ok := o.(*authorizationv1.SubjectAccessReview)
	if !ok || review.Spec.ResourceAttributes.Resource != "packages" || review.Spec.ResourceAttributes.Namespace != "" {
		return errors.New("an unexpected question")
	}
	review.Status.Allowed = slices.Contains(review.Spec.Groups, "system:masters")
	return nil
}

func TestInternalPackagesAreReservedForAdministrators(t *testing.T) {
	rules := &packageRules{users: &requester.Reviewer{Client: reviews{}}}
	plain := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: "my", Namespace: "eksa-packages-x"}, Spec: packagesv1.PackageSpec{PackageName: "hello"}}
	internal := plain.DeepCopy()
	internal.Annotations = map[string]string{packagesv1.InternalAnnotation: "true"}
	changed := internal.DeepCopy()
	changed.Spec.Config = "unchecked: true"
	labeled := internal.DeepCopy()
	labeled.Labels = map[string]string{"a": "b"}
	for _, tc := range []struct {
		name     string
		was, is  *packagesv1.Package
		reserved bool
	}{
		{"creating one", nil, internal, true},
		{"making one internal", plain, internal, true},
		{"making one internal with another config", plain, changed, true},
		{"changing one", internal, changed, true},
		{"labeling one", internal, labeled, false},
	} {
		for group, administrator := range map[string]bool{"system:masters": true, "system:authenticated": false} {
			user := authenticationv1.UserInfo{Username: "somebody", Groups: []string{group}}
			ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UserInfo: user}})
			var err error
			if tc.was == nil {
				_, err = rules.ValidateCreate(ctx, tc.is)
			} else {
				_, err = rules.ValidateUpdate(ctx, tc.was, tc.is)
			}
			if denied := tc.reserved && !administrator; denied != (err != nil) || denied && !strings.Contains(err.Error(), "only administrators may") {
				t.Errorf("%s as a member of %s: %v", tc.name, group, err)
			}
		}
	}
}
