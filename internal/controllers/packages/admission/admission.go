// Package admission holds the rules for packages that a schema can't express. Their texts, their order and where they are asked are those
// that people's scripts know; only what kept good objects out is different.
//
// Each rule looks at what is in the manager's cache and asks nobody. An update that leaves alone what a rule is about is never refused:
// finalizers must come off. Start with Setup.
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
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Options are what the rules depend on.
type Options struct {
	// Keys are those that bundles may be signed with.
	Keys bundle.Keys
	// ManagementCluster is the name of the cluster that some packages must not be on; empty if it has none.
	ManagementCluster string
}

// Setup adds the webhooks of all three kinds.
func Setup(mgr ctrl.Manager, o Options) error {
	return errors.Join(
		add(mgr, &packagesv1.Package{}, &packageRules{Options: o, reader: mgr.GetClient()}),
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

// refusal is an answer with one text in all places where it has always been.
func refusal(text string) error { return answer(http.StatusBadRequest, text) }

// fault is an answer for what the user can't help.
func fault(text string) error { return answer(http.StatusInternalServerError, text) }

func answer(code int32, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: text, Reason: metav1.StatusReason(text),
	}}
}

// failed wraps what is wrong with an object, of whatever kind, the way it always was.
func failed(name string, err error) error {
	return refusal(fmt.Sprintf("package %s failed validation with error: %v", name, err))
}

// ignored is what ValidateDelete answers: nothing is refused.
func ignored(context.Context) (admission.Warnings, error) { return nil, nil }
