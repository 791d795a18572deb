package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestCiliumSettingsAreHandedOn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		cilium anywherev1.CiliumConfig
		want   string
	}{
		{"Drover installs the network", anywherev1.CiliumConfig{PolicyEnforcementMode: "default"}, ""},
		{"no settings", anywherev1.CiliumConfig{SkipUpgrade: ptr.To(true)}, ""},
		{"direct routing", anywherev1.CiliumConfig{SkipUpgrade: ptr.To(true), RoutingMode: "direct", IPv4NativeRoutingCIDR: "10.0.0.0/8"}, `{"autoDirectNodeRoutes":true,"ipv4NativeRoutingCIDR":"10.0.0.0/8","routingMode":"native"}`},
		{"an overlay", anywherev1.CiliumConfig{SkipUpgrade: ptr.To(true), RoutingMode: "overlay", PolicyEnforcementMode: "always", CNIExclusive: ptr.To(false)}, `{"cni":{"exclusive":false},"policyEnforcementMode":"always","routingMode":"tunnel"}`},
		{"own values win", anywherev1.CiliumConfig{SkipUpgrade: ptr.To(true), EgressMasqueradeInterfaces: "eth0", HelmValues: &runtime.RawExtension{Raw: []byte(`{"egressMasqueradeInterfaces":"eth1","hubble":{"enabled":true}}`)}}, `{"egressMasqueradeInterfaces":"eth1","hubble":{"enabled":true}}`},
	} {
		in := input(t, "small")
		in.Config.Cluster.Spec.ClusterNetwork.CNIConfig = &anywherev1.CNIConfig{Cilium: &tc.cilium}
		set := build(t, in)
		if got := set.Cluster.Annotations[anywherev1.CiliumValuesAnnotation]; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if tc.cilium.SkipUpgrade != nil && set.Network != nil {
			t.Errorf("%s: Drover installs its own network", tc.name)
		}
	}
}

// TestWaitingUpgradeKeepsMachines checks that an upgrade that waits changes nothing but its record
// and the number of machines: those of another change would join a control plane that is upgraded
// before they are there.
func TestWaitingUpgradeKeepsMachines(t *testing.T) {
	in := input(t, "small")
	in.Config.Cluster.Spec.KubernetesVersion = "1.35"
	before := build(t, in)
	in.Now = existingAfter(before)
	in.Config.Cluster.Spec.KubernetesVersion = "1.36"
	in.KubernetesVersion, in.HoldMachines, in.HoldWorkers, in.Upgrade = before.ControlPlane.Spec.Version, true, true, "{}"
	in.Config.Cluster.Spec.ControlPlaneConfiguration.CertSANs = []string{"api.example.com"}
	in.Config.Cluster.Spec.ControlPlaneConfiguration.Count = 5
	in.Now.ControlPlane.Annotations = map[string]string{ConfigAnnotation: "digest"}
	waiting := build(t, in)
	if got := waiting.ControlPlane.Annotations[ConfigAnnotation]; got != "digest" {
		t.Errorf("the digest of the configuration is %q", got)
	}
	want := *before.ControlPlane.Spec.DeepCopy()
	want.Replicas = ptr.To[int32](5)
	if diff := cmp.Diff(want, waiting.ControlPlane.Spec); diff != "" {
		t.Errorf("the control plane (-want +got):\n%s", diff)
	}
	if got := machineryOf(waiting.Workers[0]); got != machineryOf(before.Workers[0]) || len(waiting.Held) > 0 {
		t.Errorf("workers have %+v, held: %v", got, waiting.Held)
	}
	if waiting.Cluster.Annotations[addonsv1.KubernetesUpgradeAnnotation] != "{}" {
		t.Errorf("annotations are %v", waiting.Cluster.Annotations)
	}

	in.HoldMachines = false
	in.KubernetesVersion, in.Now.ControlPlane.Status.Version = "v1.36.3", "v1.36.3"
	held := build(t, in)
	if got := machineryOf(held.Workers[0]); got != machineryOf(before.Workers[0]) || len(held.Held) != len(held.Workers) || held.ControlPlane.Spec.Version != "v1.36.3" {
		t.Errorf("workers have %+v, held: %v, control plane %s", got, held.Held, held.ControlPlane.Spec.Version)
	}
}

func TestGroupIsInItsFailureDomain(t *testing.T) {
	in := input(t, "small")
	in.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].FailureDomains = []string{"ny"}
	if got := build(t, in).Workers[0].Spec.Template.Spec.FailureDomain; got != "ny" {
		t.Errorf("workers are in %q", got)
	}
}
