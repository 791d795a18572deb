package plan

import (
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// Want returns the release that a HelmChartProxy wants on a cluster. While the cluster is upgraded,
// it is rendered for the Kubernetes version that the stage of the add-on sees.
func Want(chart *addonsv1.HelmChartProxy, program *desired.Program, f desired.Facts) (desired.Release, error) {
	upgrade := lockstep.Of(f.Cluster)
	if upgrade != nil {
		f.Kubernetes = upgrade.Version(StageOf(chart, f.Release, upgrade.To))
	}
	want, err := program.For(ctrlclient.ObjectKeyFromObject(chart), f)
	if upgrade != nil && f.Kubernetes == upgrade.To {
		want.Kubernetes = upgrade.To
	}
	return want, err
}

// StageOf returns the stage of a HelmChartProxy on a cluster that is upgraded to a version. It may
// have no release there.
func StageOf(chart *addonsv1.HelmChartProxy, r *addonsv1.HelmReleaseProxy, to string) addonsv1.UpgradeStage {
	if r == nil {
		r = &addonsv1.HelmReleaseProxy{Spec: addonsv1.HelmReleaseProxySpec{ChartName: chart.Spec.ChartName, ReconcileStrategy: chart.Spec.ReconcileStrategy}}
	}
	return lockstep.StageOf(chart.Annotations[addonsv1.UpgradeStageAnnotation], r, to)
}
