// Package admission validates packages, bundles and PackageBundleControllers beyond their schemas.
// The messages and the order of the rules are those of the original controller, because existing
// scripts match them.
//
// Rules read only the manager's cache, and ask the API server about a user where only
// administrators may do something. An update that doesn't change the validated fields is always
// accepted, so that finalizers can be removed. Start with Setup.
package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Options configure the rules.
type Options struct {
	// Keys are the keys that may sign bundles.
	Keys bundle.Keys
	// ManagementCluster is the name of the cluster that some packages are excluded from; may be
	// empty.
	ManagementCluster string
	// Policy selects the namespaces that require a service account.
	Policy *delegation.Policy
}

// Setup adds the webhooks of all three kinds.
func Setup(mgr ctrl.Manager, o Options) error {
	return errors.Join(
		add(mgr, &packagesv1.Package{}, &packageRules{Options: o, reader: mgr.GetClient(), users: &requester.Reviewer{Client: mgr.GetClient()}}),
		add(mgr, &packagesv1.PackageBundle{}, &bundleRules{Options: o}),
		add(mgr, &packagesv1.PackageBundleController{}, &controllerRules{reader: mgr.GetClient()}),
	)
}

func add[T client.Object](mgr ctrl.Manager, object T, rules admission.Validator[T]) error {
	if err := ctrl.NewWebhookManagedBy(mgr, object).WithValidator(rules).Complete(); err != nil {
		return fmt.Errorf("adding the webhook of %T: %w", object, err)
	}
	return nil
}

// rejection returns an error with the message as its reason too, where existing scripts expect it.
func rejection(text string) error { return statusError(http.StatusBadRequest, text) }

// internalError returns an error that the user can't fix.
func internalError(text string) error {
	return statusError(http.StatusInternalServerError, text)
}

func statusError(code int32, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: text, Reason: metav1.StatusReason(text),
	}}
}

// invalid rejects an object. The message says "package" for all kinds, which existing scripts
// expect.
func invalid(name string, err error) error {
	return rejection(fmt.Sprintf("package %s failed validation with error: %v", name, err))
}

// ignored accepts all deletions.
func ignored(context.Context) (admission.Warnings, error) { return nil, nil }
