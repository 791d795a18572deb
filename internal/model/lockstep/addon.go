package lockstep

import (
	"cmp"
	"fmt"

	"sigs.k8s.io/cluster-api/util/conditions"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
)

// AddOn is an add-on of a cluster in an upgrade.
type AddOn struct {
	// Kind and Name are those of the object that a user has created.
	Kind  string                `json:"kind"`
	Name  string                `json:"name"`
	Stage addonsv1.UpgradeStage `json:"stage"`
	// Problem is why the add-on isn't ready for the new version, or an empty string.
	Problem string `json:"problem,omitempty"`
}

func (a AddOn) String() string { return fmt.Sprintf("%s %s: %s", a.Kind, a.Name, a.Problem) }

// maxNamed is how many add-ons a message names.
const maxNamed = 3

// Describe lists the problems of add-ons.
func Describe(all []AddOn) string {
	clauses := make([]string, 0, len(all))
	for _, a := range all {
		clauses = append(clauses, a.String())
	}
	return text.Clauses(clauses, maxNamed)
}

// Unsupported returns why the installed chart of a release can't stay in an upgrade to a version,
// or an empty string.
func Unsupported(r *addonsv1.HelmReleaseProxy, to string) string {
	a := r.Status.Applied
	if a == nil || Supports(a.Kubernetes, to) {
		return ""
	}
	return fmt.Sprintf("version %s of its chart supports Kubernetes %s only; choose a version that supports %s", a.Version, a.Kubernetes, to)
}

// Problem returns why a release isn't ready for a version, or an empty string. Rendered reports
// whether it follows the version of the cluster, so that it must have been rendered for the new
// one.
func Problem(r *addonsv1.HelmReleaseProxy, to string, rendered bool) string {
	ready := conditions.Get(r, clusterv1.ReadyCondition)
	switch {
	case !r.DeletionTimestamp.IsZero():
		return "the release is being uninstalled"
	case rendered && r.Annotations[addonsv1.KubernetesVersionAnnotation] != to:
		return "not rendered for " + to + " yet; if that lasts, its HelmChartProxy is paused, or its rollout has not reached the cluster"
	case r.Status.ObservedGeneration != r.Generation || ready == nil:
		return "the release has not been observed yet"
	case ready.Status != "True":
		return cmp.Or(ready.Message, ready.Reason)
	}
	return Unsupported(r, to)
}
