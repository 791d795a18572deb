package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// TestUnknownStageIsRejected checks both kinds. An unknown stage that exists must not keep an
// object from being updated.
func TestUnknownStageIsRejected(t *testing.T) {
	with := func(stage string) map[string]string { return map[string]string{addonsv1.UpgradeStageAnnotation: stage} }
	charts, releases := &chartRules{Options: Options{}}, &releaseRules{}
	for _, tc := range []struct {
		name    string
		was, is map[string]string
		reject  bool
	}{
		{"none", nil, nil, false},
		{"a stage", nil, with("BeforeControlPlane"), false},
		{"no stage on purpose", nil, with("None"), false},
		{"a mistake", nil, with("before"), true},
		{"an empty one", nil, with(""), true},
		{"a mistake that exists", with("before"), with("before"), false},
		{"another mistake", with("before"), with("after"), true},
	} {
		wasChart, isChart := good(), good()
		wasChart.Annotations, isChart.Annotations = tc.was, tc.is
		_, err := charts.ValidateUpdate(t.Context(), wasChart, isChart)
		if (err != nil) != tc.reject || tc.reject && !strings.Contains(err.Error(), "BeforeWorkers") {
			t.Errorf("%s on a HelmChartProxy: %v", tc.name, err)
		}
		wasRelease := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: tc.was}}
		isRelease := wasRelease.DeepCopy()
		isRelease.Annotations = tc.is
		if _, err := releases.ValidateUpdate(t.Context(), wasRelease, isRelease); (err != nil) != tc.reject {
			t.Errorf("%s on a HelmReleaseProxy: %v", tc.name, err)
		}
	}
}
