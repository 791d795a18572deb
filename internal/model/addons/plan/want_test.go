package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// TestReleasesFollowAnUpgradeInTheirStage checks which version an add-on is rendered for, by rule
// and by template, and that its release is marked once it has the new one.
func TestReleasesFollowAnUpgradeInTheirStage(t *testing.T) {
	const from, to = "v1.35.4", "v1.36.3"
	for _, tc := range []struct {
		name  string
		stage addonsv1.UpgradeStage
		step  lockstep.Step // empty: no upgrade
		// present is the version of the control plane.
		present, want, mark string
	}{
		{"no upgrade", addonsv1.BeforeControlPlane, "", from, from, ""},
		{"early, at once", addonsv1.BeforeControlPlane, lockstep.BeforeControlPlane, from, to, to},
		{"in between, before its turn", addonsv1.BeforeWorkers, lockstep.ControlPlane, to, from, ""},
		{"in between, in its turn", addonsv1.BeforeWorkers, lockstep.BeforeWorkers, to, to, to},
		{"late, before its turn", addonsv1.AfterWorkers, lockstep.Workers, to, from, ""},
		{"late, in its turn", addonsv1.AfterWorkers, lockstep.AfterWorkers, to, to, to},
		{"none", addonsv1.NoStage, lockstep.ControlPlane, to, to, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chart := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", Annotations: map[string]string{addonsv1.UpgradeStageAnnotation: string(tc.stage)}}}
			chart.Spec.ChartName = "x"
			chart.Spec.ValuesTemplate = "for: {{ .ControlPlane.spec.version }}"
			chart.Spec.Versions = []addonsv1.VersionRule{{Kubernetes: "~1.35", Version: from}, {Kubernetes: "~1.36", Version: to}}
			program, problems := desired.Compile(&chart.Spec)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
			if tc.step != "" {
				u := &lockstep.Upgrade{From: from, To: to, Step: tc.step}
				cluster.Annotations = map[string]string{addonsv1.KubernetesUpgradeAnnotation: u.String()}
			}
			plane := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": tc.present}}}
			want, err := Want(chart, program, desired.Facts{Cluster: cluster, ControlPlane: plane})
			if err != nil || want.Spec.Version != tc.want || want.Spec.Values != "for: "+tc.want {
				t.Fatalf("version %q, values %q, %v; want %q", want.Spec.Version, want.Spec.Values, err, tc.want)
			}
			if got := Decide(chart, nil, want).Object.Annotations[addonsv1.KubernetesVersionAnnotation]; got != tc.mark {
				t.Errorf("marked with %q, want %q", got, tc.mark)
			}
			if got, _, _ := unstructured.NestedString(plane.Object, "spec", "version"); got != tc.present {
				t.Errorf("the control plane of the cache has changed to %s", got)
			}
		})
	}
}

// TestMarkStays checks that a release isn't written again after an upgrade.
func TestMarkStays(t *testing.T) {
	chart := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "u"}}
	chart.Spec.ChartName = "x"
	program, _ := desired.Compile(&chart.Spec)
	f := desired.Facts{Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}}
	want, err := Want(chart, program, f)
	if err != nil {
		t.Fatal(err)
	}
	want.Kubernetes = "v1.36.3"
	f.Release = Decide(chart, nil, want).Object
	if want, err = Want(chart, program, f); err != nil {
		t.Fatal(err)
	}
	if c := Decide(chart, f.Release, want); c.Verb != Keep {
		t.Errorf("the release is to be changed: %s", c.Verb)
	}
}
