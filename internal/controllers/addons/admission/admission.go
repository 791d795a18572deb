// Package admission holds the defaults and rules for add-ons that a schema can't express.
//
// Each rule is a function from a spec to a list of problems that name the field, and never a value that could hold a secret. An update that
// leaves the spec alone is never refused: whatever is in it, finalizers must come off. Start with Setup.
package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Options are what the rules depend on.
type Options struct {
	// PlainHTTP allows repositories without encryption.
	PlainHTTP bool
}

// Setup adds the webhooks of both kinds.
func Setup(mgr ctrl.Manager, o Options) error {
	charts := &chartRules{Options: o, reader: mgr.GetClient()}
	err := ctrl.NewWebhookManagedBy(mgr, &addonsv1.HelmChartProxy{}).WithDefaulter(charts).WithValidator(charts).Complete()
	if err != nil {
		return fmt.Errorf("registering webhooks of HelmChartProxy: %w", err)
	}
	releases := &releaseRules{o}
	err = ctrl.NewWebhookManagedBy(mgr, &addonsv1.HelmReleaseProxy{}).WithDefaulter(releases).WithValidator(releases).Complete()
	if err != nil {
		return fmt.Errorf("registering webhooks of HelmReleaseProxy: %w", err)
	}
	return nil
}

// refuse is nil if there are no problems.
func refuse(kind string, obj ctrlclient.Object, problems field.ErrorList) (admission.Warnings, error) {
	if len(problems) == 0 {
		return nil, nil
	}
	return nil, apierrors.NewInvalid(addonsv1.GroupVersion.WithKind(kind).GroupKind(), obj.GetName(), problems)
}

// immutable is a problem if a field has changed.
func immutable[T comparable](path *field.Path, was, is T) field.ErrorList {
	if was == is {
		return nil
	}
	return field.ErrorList{field.Invalid(path, is, "field is immutable")}
}

// strategy takes an empty one for what it means: adding the word to a manifest changes nothing.
func strategy(s addonsv1.ReconcileStrategy) addonsv1.ReconcileStrategy {
	if s == "" {
		return addonsv1.Continuous
	}
	return s
}

// tool takes an empty one for what it means.
func tool(t addonsv1.Tool) addonsv1.Tool {
	if t == "" {
		return addonsv1.Helm
	}
	return t
}

// ignored is what ValidateDelete answers: nothing is refused.
func ignored(context.Context) (admission.Warnings, error) { return nil, nil }
