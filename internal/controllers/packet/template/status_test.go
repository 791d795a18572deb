package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
)

func TestStatus(t *testing.T) {
	plan := client.Plan{Slug: "c3.large.arm64"}
	plan.Specs.Memory.Total = "256GB"
	for name, tt := range map[string]struct {
		plan *client.Plan
		want infrav1.PacketMachineTemplateStatus
	}{
		"a plan that the API does not know": {nil, infrav1.PacketMachineTemplateStatus{MachineType: "t"}},
		"a plan": {&plan, infrav1.PacketMachineTemplateStatus{
			MachineType: "t",
			Capacity: corev1.ResourceList{
				corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
			},
			NodeInfo: infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, status("t", tt.plan)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	plans := []client.Plan{{Slug: "a"}, {Slug: "b"}}
	if got := find(plans, "b"); got != &plans[1] {
		t.Errorf("found %+v", got)
	}
	if got := find(plans, "c"); got != nil {
		t.Errorf("found %+v", got)
	}
}
