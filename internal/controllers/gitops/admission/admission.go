// Package admission implements the webhooks of GitChanges. A GitChange grants nothing: whoever
// creates one must be allowed to do the same to the objects in it directly, and the webhook records
// who that was.
//
// The API server answers what a user may do. Rules of a spec are those of package spec, as for the
// objects themselves. Start with Setup; check.go has the rules.
package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
)

// Options configure the rules.
type Options struct {
	// Enabled means that the controller runs. Without it, nobody would process a GitChange.
	Enabled bool
}

// Setup adds the webhooks.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &rules{Options: o, reader: mgr.GetClient(), users: &requester.Reviewer{Client: mgr.GetClient()}}
	err := ctrl.NewWebhookManagedBy(mgr, &droverv1.GitChange{}).WithDefaulter(r).WithValidator(r).Complete()
	if err != nil {
		return fmt.Errorf("adding the webhooks of GitChange: %w", err)
	}
	return nil
}

// rules are the webhooks of GitChanges.
type rules struct {
	Options

	reader client.Reader
	users  *requester.Reviewer
}

// Default records who creates a GitChange, whatever the object says. It never changes one that
// exists, which is immutable.
func (r *rules) Default(ctx context.Context, change *droverv1.GitChange) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if request.Operation == admissionv1.Create {
		change.Spec.RequestedBy = request.UserInfo.Username
	}
	return nil
}

// ValidateCreate checks a new GitChange.
func (r *rules) ValidateCreate(ctx context.Context, change *droverv1.GitChange) (admission.Warnings, error) {
	if !r.Enabled {
		return nil, denial("this management plane doesn't manage clusters through Git; ask an administrator to start it with --gitops")
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	if change.Spec.Action == droverv1.GitRemove {
		return nil, r.checkRemove(ctx, change, request.UserInfo)
	}
	return r.checkWrite(ctx, change, request.UserInfo)
}

// ValidateUpdate accepts every update: the schema allows no change of the spec.
func (r *rules) ValidateUpdate(context.Context, *droverv1.GitChange, *droverv1.GitChange) (admission.Warnings, error) {
	return nil, nil
}

// ValidateDelete accepts every deletion. What was committed stays.
func (r *rules) ValidateDelete(context.Context, *droverv1.GitChange) (admission.Warnings, error) {
	return nil, nil
}

// denial denies an operation.
func denial(format string, args ...any) error {
	return answer(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(format, args...))
}

// invalid rejects the content of an object.
func invalid(text string) error {
	return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, text)
}

func answer(code int32, reason metav1.StatusReason, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text}}
}
