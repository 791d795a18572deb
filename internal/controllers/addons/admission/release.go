package admission

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

const releaseKind = "HelmReleaseProxy"

// releaseRules are those for HelmReleaseProxies.
type releaseRules struct{ Options }

// Default fills in what was left out.
func (r *releaseRules) Default(_ context.Context, p *addonsv1.HelmReleaseProxy) error {
	if p.Spec.ReleaseNamespace == "" {
		p.Spec.ReleaseNamespace = corev1.NamespaceDefault
	}
	return nil
}

// ValidateCreate checks a new object.
func (r *releaseRules) ValidateCreate(_ context.Context, p *addonsv1.HelmReleaseProxy) (admission.Warnings, error) {
	return refuse(releaseKind, p, r.problems(p))
}

// ValidateUpdate checks a changed object. What identifies a release on its cluster can't change: the old one would stay behind.
func (r *releaseRules) ValidateUpdate(_ context.Context, was, is *addonsv1.HelmReleaseProxy) (admission.Warnings, error) {
	if reflect.DeepEqual(was.Spec, is.Spec) {
		return nil, nil
	}
	spec := field.NewPath("spec")
	problems := r.problems(is)
	if !ofPackage(was) {
		problems = append(problems, immutableURL(spec.Child("repoURL"), was.Spec.RepoURL, is.Spec.RepoURL)...)
		problems = append(problems, immutable(spec.Child("chartName"), was.Spec.ChartName, is.Spec.ChartName)...)
	}
	for _, more := range []field.ErrorList{
		immutable(spec.Child("namespace"), was.Spec.ReleaseNamespace, is.Spec.ReleaseNamespace),
		immutable(spec.Child("reconcileStrategy"), strategy(was.Spec.ReconcileStrategy), strategy(is.Spec.ReconcileStrategy)),
		immutable(spec.Child("tool"), tool(was.Spec.Tool), tool(is.Spec.Tool)),
	} {
		problems = append(problems, more...)
	}
	return refuse(releaseKind, is, problems)
}

// ofPackage says that a release belongs to a Package. Its chart is known by digest, and may be in another place in the next bundle.
func ofPackage(p *addonsv1.HelmReleaseProxy) bool {
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "Package" {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == packagesv1.GroupVersion.Group
}

// ValidateDelete refuses nothing.
func (r *releaseRules) ValidateDelete(ctx context.Context, _ *addonsv1.HelmReleaseProxy) (admission.Warnings, error) {
	return ignored(ctx)
}

func (r *releaseRules) problems(p *addonsv1.HelmReleaseProxy) field.ErrorList {
	spec := field.NewPath("spec")
	problems := repository(spec.Child("repoURL"), p.Spec.RepoURL, r.PlainHTTP)
	problems = append(problems, drift(spec.Child("drift"), p.Spec.Drift)...)
	return append(problems, health(spec.Child("health"), p.Spec.Health)...)
}
