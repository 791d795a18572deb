package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/inplace"
)

// marked is what the templates of machines have that are upgraded in place.
var marked = map[string]string{inplace.Annotation: inplace.Strategy}

func TestControlPlaneRefusals(t *testing.T) {
	machines := func(name, plan string) *infrav1.PacketMachineTemplate {
		m := &infrav1.PacketMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Spec.Template.Spec.MachineType = plan
		return m
	}
	plane := func(digest, template, version string) *controlplanev1.KubeadmControlPlane {
		p := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{build.ConfigAnnotation: digest}}}
		p.Spec.Version, p.Spec.MachineTemplate.Spec.InfrastructureRef.Name = version, template
		p.Spec.MachineTemplate.ObjectMeta.Annotations = marked
		return p
	}
	file := func(p *controlplanev1.KubeadmControlPlane) *controlplanev1.KubeadmControlPlane {
		p.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: "/etc/a"}}
		return p
	}
	defaulted := func(p *controlplanev1.KubeadmControlPlane) *controlplanev1.KubeadmControlPlane {
		p.Spec.KubeadmConfigSpec.Format = bootstrapv1.CloudConfig
		return p
	}
	behind := plane("a", "t-1", "v1.36.3")
	behind.Status.Version = "v1.35.4"
	replaced := plane("b", "t-2", "v1.37.0")
	replaced.Spec.MachineTemplate.ObjectMeta.Annotations = nil
	have := live{templates: []*infrav1.PacketMachineTemplate{machines("t-1", "small")}}
	for name, tt := range map[string]struct {
		is, want *controlplanev1.KubeadmControlPlane
		refusal  string
	}{
		"a new control plane":                    {nil, plane("a", "t-1", "v1.36.3"), ""},
		"a version":                              {plane("a", "t-1", "v1.35.4"), plane("a", "t-1", "v1.36.3"), ""},
		"machines that are replaced":             {plane("a", "t-1", "v1.35.4"), replaced, ""},
		"defaults of the API server":             {defaulted(plane("", "t-1", "v1.35.4")), plane("a", "t-1", "v1.36.3"), ""},
		"the strategy changes, and a file":       {defaulted(plane("", "t-1", "v1.35.4")), file(plane("a", "t-1", "v1.36.3")), "files"},
		"a file":                                 {plane("a", "t-1", "v1.35.4"), file(plane("b", "t-1", "v1.36.3")), "kubeadm configuration changes (files)"},
		"a file that is removed":                 {file(plane("a", "t-1", "v1.35.4")), plane("b", "t-1", "v1.36.3"), "a field is removed"},
		"other machines":                         {plane("a", "t-1", "v1.35.4"), plane("a", "t-2", "v1.36.3"), "machine changes (machineType)"},
		"a downgrade":                            {plane("a", "t-1", "v1.36.3"), plane("a", "t-1", "v1.35.4"), "older"},
		"two versions while machines are behind": {behind, plane("a", "t-1", "v1.37.0"), "more than one minor version"},
	} {
		t.Run(name, func(t *testing.T) {
			have.controlPlane = tt.is
			got := strings.Join(controlPlaneRefusals(&have, &build.Set{ControlPlane: tt.want, Machines: []*infrav1.PacketMachineTemplate{machines("t-2", "large")}}), "; ")
			if (got == "") != (tt.refusal == "") || !strings.Contains(got, tt.refusal) {
				t.Errorf("got %q, want %q", got, tt.refusal)
			}
		})
	}
}

func TestUpgradesInPlaceNameTheMachine(t *testing.T) {
	f := healthyFacts()
	f.controlPlane.Spec.MachineTemplate.ObjectMeta.Annotations = marked
	*f.controlPlane.Status.UpToDateReplicas = 0
	f.machines[0].Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineUpdatingCondition, Status: metav1.ConditionTrue, Message: "In-place update in progress: upgrading to v1.36.3: draining the node"}}
	f.machines[0].Labels[clusterv1.MachineControlPlaneLabel] = ""
	got := controlPlaneReady(f)
	if got.reason != anywherev1.InPlaceUpgradeInProgressReason || !strings.HasSuffix(got.message, "upgrading "+f.machines[0].Name+" in place to v1.36.3: draining the node") {
		t.Errorf("got %+v", got)
	}
}

func TestMovedWorkersAreNotReadyBeforeTheyAreUpgraded(t *testing.T) {
	f := healthyFacts()
	f.workers[0].Spec.Template.Annotations = marked
	if got := workersReady(f); got.status != metav1.ConditionTrue {
		t.Fatalf("got %+v", got)
	}
	worker := f.machines[len(f.machines)-1]
	worker.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	if got := workersReady(f); got.reason != anywherev1.InPlaceUpgradeInProgressReason {
		t.Errorf("got %+v", got)
	}
}
