package admission

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
)

const releaseKind = "HelmReleaseProxy"

// releaseRules validates HelmReleaseProxies.
type releaseRules struct{ Options }

// Default sets defaults.
func (r *releaseRules) Default(_ context.Context, p *addonsv1.HelmReleaseProxy) error {
	if p.Spec.ReleaseNamespace == "" {
		p.Spec.ReleaseNamespace = corev1.NamespaceDefault
	}
	return nil
}

// ValidateCreate validates a new object.
func (r *releaseRules) ValidateCreate(ctx context.Context, p *addonsv1.HelmReleaseProxy) (admission.Warnings, error) {
	problems, err := r.problems(ctx, p)
	if err != nil {
		return nil, err
	}
	return invalid(releaseKind, p, problems)
}

// ValidateUpdate validates a changed object. The fields that identify a release on its cluster are
// immutable, because a change would leave the old release behind.
func (r *releaseRules) ValidateUpdate(ctx context.Context, was, is *addonsv1.HelmReleaseProxy) (admission.Warnings, error) {
	if reflect.DeepEqual(was.Spec, is.Spec) {
		return invalid(releaseKind, is, changedStage(was, is))
	}
	spec := field.NewPath("spec")
	problems, err := r.problems(ctx, is)
	if err != nil {
		return nil, err
	}
	// The chart of a Package is identified by digest and can move in the next bundle.
	if target.PackageOf(was) == nil {
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
	return invalid(releaseKind, is, problems)
}

// ValidateDelete accepts every deletion.
func (r *releaseRules) ValidateDelete(_ context.Context, _ *addonsv1.HelmReleaseProxy) (admission.Warnings, error) {
	return allowed()
}

func (r *releaseRules) problems(ctx context.Context, p *addonsv1.HelmReleaseProxy) (field.ErrorList, error) {
	spec := field.NewPath("spec")
	problems := repository(spec.Child("repoURL"), p.Spec.RepoURL, r.PlainHTTP)
	problems = append(problems, drift(spec.Child("drift"), p.Spec.Drift)...)
	problems = append(problems, health(spec.Child("health"), p.Spec.Health)...)
	problems = append(problems, stage(p)...)
	refs := references{account: p.Spec.ServiceAccountName}
	if target.PackageOf(p) == nil { // the controller verifies the owner
		refs.credentials, refs.tls = p.Spec.Credentials, p.Spec.TLSConfig
		if refs.account == "" {
			problems = append(problems, sameNamespace(spec.Child("clusterRef", "namespace"), p.Spec.ClusterRef.Namespace, p.Namespace)...)
		}
	}
	denied, err := r.permissions(ctx, p, refs)
	return append(problems, denied...), err
}
