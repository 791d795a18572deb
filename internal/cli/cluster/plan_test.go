package cluster

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestPlanNamesHowMachinesAreUpgraded(t *testing.T) {
	c := &anywherev1.Cluster{}
	c.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy = &anywherev1.ControlPlaneUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}
	c.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{
		{Name: "a", UpgradeRolloutStrategy: &anywherev1.WorkerNodesUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}},
		{Name: "b"},
		{Name: "own", KubernetesVersion: ptr.To("1.35")},
	}
	var out strings.Builder
	if err := printUpgradePlan(&out, &upgradePlan{Components: []component{{"kubernetes", "1.35", "1.36"}}, Machines: machinesOf(c)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Upgraded in place, one machine at a time: control plane, a\n", "Replaced by new machines: b\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "own") {
		t.Errorf("a group that keeps its version is listed:\n%s", out.String())
	}
}
