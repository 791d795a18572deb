// Package admission sets defaults of HelmChartProxies and HelmReleaseProxies and validates what
// their schemas can't express.
//
// Each rule is a function from a spec to a list of problems that name the field, and never a value
// that could be secret. An update that leaves the spec unchanged is always accepted, so that
// finalizers can be removed from any object. Start with Setup.
package admission

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/delegation"
)

// Options configure the rules.
type Options struct {
	// PlainHTTP allows repositories without encryption.
	PlainHTTP bool
	// Policy selects the namespaces that require a service account.
	Policy *delegation.Policy
}

// Setup registers the webhooks of both kinds.
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

// invalid returns nil if there are no problems.
func invalid(kind string, obj ctrlclient.Object, problems field.ErrorList) (admission.Warnings, error) {
	if len(problems) == 0 {
		return nil, nil
	}
	return nil, apierrors.NewInvalid(addonsv1.GroupVersion.WithKind(kind).GroupKind(), obj.GetName(), problems)
}

// immutable rejects a change of a field.
func immutable[T comparable](path *field.Path, was, is T) field.ErrorList {
	if was == is {
		return nil
	}
	return field.ErrorList{field.Invalid(path, is, "field is immutable")}
}

// strategy resolves the default strategy, so that setting it explicitly is no change.
func strategy(s addonsv1.ReconcileStrategy) addonsv1.ReconcileStrategy {
	if s == "" {
		return addonsv1.Continuous
	}
	return s
}

// tool resolves the default tool.
func tool(t addonsv1.Tool) addonsv1.Tool {
	if t == "" {
		return addonsv1.Helm
	}
	return t
}

// allowed accepts a deletion.
func allowed() (admission.Warnings, error) { return nil, nil }
