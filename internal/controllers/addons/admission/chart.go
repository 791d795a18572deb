package admission

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
)

const chartKind = "HelmChartProxy"

// chartRules validates HelmChartProxies.
type chartRules struct {
	Options

	reader ctrlclient.Reader
}

// Default sets defaults.
func (r *chartRules) Default(_ context.Context, c *addonsv1.HelmChartProxy) error {
	desired.SetDefaults(c)
	return nil
}

// ValidateCreate validates a new object.
func (r *chartRules) ValidateCreate(ctx context.Context, c *addonsv1.HelmChartProxy) (admission.Warnings, error) {
	problems, err := r.problems(ctx, c)
	if err != nil {
		return nil, err
	}
	return invalid(chartKind, c, problems)
}

// ValidateUpdate validates a changed object.
func (r *chartRules) ValidateUpdate(ctx context.Context, was, is *addonsv1.HelmChartProxy) (admission.Warnings, error) {
	if reflect.DeepEqual(was.Spec, is.Spec) {
		return invalid(chartKind, is, changedStage(was, is))
	}
	problems, err := r.problems(ctx, is)
	if err != nil {
		return nil, err
	}
	problems = append(problems, immutable(field.NewPath("spec", "reconcileStrategy"), strategy(was.Spec.ReconcileStrategy), strategy(is.Spec.ReconcileStrategy))...)
	return invalid(chartKind, is, problems)
}

// ValidateDelete accepts every deletion.
func (r *chartRules) ValidateDelete(_ context.Context, _ *addonsv1.HelmChartProxy) (admission.Warnings, error) {
	return allowed()
}

func (r *chartRules) problems(ctx context.Context, c *addonsv1.HelmChartProxy) (field.ErrorList, error) {
	spec := field.NewPath("spec")
	problems := repository(spec.Child("repoURL"), c.Spec.RepoURL, r.PlainHTTP)
	problems = append(problems, selector(spec.Child("clusterSelector"), &c.Spec.ClusterSelector)...)
	_, unparsable := desired.Compile(&c.Spec)
	problems = append(problems, unparsable...)
	problems = append(problems, rollout(spec.Child("rollout"), c.Spec.Rollout)...)
	problems = append(problems, drift(spec.Child("drift"), c.Spec.Drift)...)
	problems = append(problems, health(spec.Child("health"), c.Spec.Health)...)
	problems = append(problems, stage(c)...)
	denied, err := r.permissions(ctx, c, references{c.Spec.ServiceAccountName, c.Spec.Credentials, c.Spec.TLSConfig})
	if err != nil {
		return nil, err
	}
	problems = append(problems, denied...)
	circular, err := r.dependencies(ctx, c)
	return append(problems, circular...), err
}

// dependencies rejects dependency cycles.
func (r *chartRules) dependencies(ctx context.Context, c *addonsv1.HelmChartProxy) (field.ErrorList, error) {
	if len(c.Spec.DependsOn) == 0 {
		return nil, nil
	}
	list := &addonsv1.HelmChartProxyList{}
	if err := r.reader.List(ctx, list, ctrlclient.InNamespace(c.Namespace), ctrlclient.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing HelmChartProxies to check dependencies: %w", err)
	}
	edges := map[string][]string{}
	for _, other := range list.Items {
		edges[other.Name] = other.Spec.DependsOn
	}
	edges[c.Name] = c.Spec.DependsOn
	return rejectCycles(field.NewPath("spec", "dependsOn"), c.Name, edges), nil
}
