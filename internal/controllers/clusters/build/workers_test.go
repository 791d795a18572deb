package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/inplace"
)

func TestWorkersWaitForTheControlPlane(t *testing.T) {
	for _, tc := range []struct {
		name, present, cluster string
		group                  *string
		want                   string
		held                   bool
	}{
		{name: "nothing changes", present: "v1.35.4", cluster: "1.35", want: "v1.35.4"},
		{name: "the control plane is behind", present: "v1.35.4", cluster: "1.36", want: "v1.35.4", held: true},
		{name: "the control plane has come up", present: "v1.36.3", cluster: "1.36", want: "v1.36.3"},
		{name: "the group stays behind", present: "v1.36.3", cluster: "1.36", group: ptr.To("1.35"), want: "v1.35.4"},
		{name: "the group stays behind while the control plane changes", present: "v1.35.4", cluster: "1.36", group: ptr.To("1.35"), want: "v1.35.4"},
		{name: "the version of the control plane is unknown", present: "", cluster: "1.36", want: "v1.36.3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input(t, "small")
			in.Config.Cluster.Spec.KubernetesVersion = "1.35"
			in.Now = existingAfter(build(t, in))
			in.Now.ControlPlane.Status.Version = tc.present
			in.Config.Cluster.Spec.KubernetesVersion = tc.cluster
			in.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].KubernetesVersion = tc.group
			got := build(t, in)
			if v := got.Workers[0].Spec.Template.Spec.Version; v != tc.want || (len(got.Held) > 0) != tc.held {
				t.Errorf("version is %s, held are %v; want %s", v, got.Held, tc.want)
			}
			if want, _ := versions(tc.cluster); got.ControlPlane.Spec.Version != want {
				t.Errorf("the control plane has %s", got.ControlPlane.Spec.Version)
			}
		})
	}
}

func TestHeldGroupsKeepTheirTemplates(t *testing.T) {
	in := input(t, "small")
	in.Config.Cluster.Spec.KubernetesVersion = "1.35"
	in.Now = existingAfter(build(t, in))
	before := machineryOf(in.Now.Workers["small-md-0"])
	in.Config.Cluster.Spec.KubernetesVersion = "1.36"
	in.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].Labels = map[string]string{"new": "label"}
	in.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(7)
	held := build(t, in)
	if got := machineryOf(held.Workers[0]); got != before {
		t.Errorf("machines would be replaced twice: %+v, was %+v", got, before)
	}
	if *held.Workers[0].Spec.Replicas != 7 {
		t.Error("the count waits too")
	}
	in.Now.ControlPlane.Status.Version = "v1.36.3"
	after := machineryOf(build(t, in).Workers[0])
	if want := (Machinery{Version: "v1.36.3", Machines: "small-md-0-1", Bootstrap: "small-md-0-2"}); after != want {
		t.Errorf("got %+v, want %+v", after, want)
	}
}

func TestOlderGroupsSkipThePreflightCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		group *string
		want  string
	}{
		{"the cluster's version", nil, ""},
		{"the same version", ptr.To("1.36"), ""},
		{"an older version", ptr.To("1.35"), "KubeadmVersionSkew"},
	} {
		in := input(t, "small")
		in.Config.Cluster.Spec.KubernetesVersion = "1.36"
		in.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].KubernetesVersion = tc.group
		if got := build(t, in).Workers[0].Annotations["machineset.cluster.x-k8s.io/skip-preflight-checks"]; got != tc.want {
			t.Errorf("%s: Cluster API skips %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAutoscaledGroupsKeepTheirReplicas(t *testing.T) {
	in := input(t, "all")
	first := build(t, in)
	group := first.Workers[1]
	if group.Spec.Replicas == nil || *group.Spec.Replicas != 2 {
		t.Errorf("a new group begins with %v", group.Spec.Replicas)
	}
	in.Now = existingAfter(first)
	if got := build(t, in).Workers[1].Spec.Replicas; got != nil {
		t.Errorf("got count %d for an existing group, want none", *got)
	}
}

func TestTemplateNumbers(t *testing.T) {
	template := func(name, sum string) client.Object {
		return &infrav1.PacketMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{ContentAnnotation: sum}}}
	}
	for _, tc := range []struct {
		name     string
		used     string
		existing []client.Object
		want     string
	}{
		{"the first", "", nil, "c-md-0-1"},
		{"the same", "c-md-0-1", []client.Object{template("c-md-0-1", "new")}, "c-md-0-1"},
		{"another", "c-md-0-1", []client.Object{template("c-md-0-1", "old")}, "c-md-0-2"},
		{"another after many", "c-md-0-9", []client.Object{template("c-md-0-9", "old"), template("c-md-0-10", "older")}, "c-md-0-11"},
		{"one that a crash left", "c-md-0-1", []client.Object{template("c-md-0-1", "old"), template("c-md-0-2", "new")}, "c-md-0-2"},
		{"the one in use among several of the same content", "c-md-0-1", []client.Object{template("c-md-0-1", "new"), template("c-md-0-2", "new")}, "c-md-0-1"},
		{"those of another group don't count", "", []client.Object{template("c-md-0-extra-4", "new"), template("c-md-07", "new"), template("c-md-0-04", "new")}, "c-md-0-1"},
		{"a cache that is behind", "c-md-0-3", nil, "c-md-0-4"},
	} {
		if got := (choice{cluster: "c", group: "md-0", sum: "new", used: tc.used}).name(tc.existing); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestSplitLabels(t *testing.T) {
	registered, propagated := splitLabels(map[string]string{
		"tier": "front", "example.com/zone": "a", "node-role.kubernetes.io/worker": "", "node-restriction.kubernetes.io/team": "x",
		"a.node.cluster.x-k8s.io/b": "c", "topology.kubernetes.io/zone": "z",
	})
	if diff := cmp.Diff(map[string]string{"tier": "front", "example.com/zone": "a", "topology.kubernetes.io/zone": "z"}, registered); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
	want := map[string]string{"node-role.kubernetes.io/worker": "", "node-restriction.kubernetes.io/team": "x", "a.node.cluster.x-k8s.io/b": "c"}
	if diff := cmp.Diff(want, propagated); diff != "" {
		t.Errorf("propagated (-want +got):\n%s", diff)
	}
}

func TestMachinesUpgradedInPlaceAreMarkedAndNeverAdded(t *testing.T) {
	in := input(t, "small")
	if got := build(t, in); len(got.ControlPlane.Spec.MachineTemplate.ObjectMeta.Annotations)+len(got.Workers[0].Spec.Template.Annotations) > 0 {
		t.Error("machines that are replaced are marked")
	}
	in.Config.Cluster.Spec.ControlPlaneConfiguration.Count = 3
	in.Config.Cluster.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy = &anywherev1.ControlPlaneUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}
	in.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].UpgradeRolloutStrategy = &anywherev1.WorkerNodesUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}
	got := build(t, in)
	control, workers := got.ControlPlane.Spec, got.Workers[0].Spec
	if !inplace.Wanted(control.MachineTemplate.ObjectMeta.Annotations) || !inplace.Wanted(workers.Template.Annotations) {
		t.Error("machines that are upgraded in place are not marked")
	}
	if surge := control.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue(); surge != 0 {
		t.Errorf("the control plane may have %d more machines", surge)
	}
	if r := workers.Rollout.Strategy.RollingUpdate; r.MaxSurge.IntValue() != 0 || r.MaxUnavailable.IntValue() != 1 {
		t.Errorf("workers: %+v", r)
	}
	before := got.ControlPlane.Annotations[ConfigAnnotation]
	in.Config.Cluster.Spec.KubernetesVersion = "1.35"
	if after := build(t, in).ControlPlane.Annotations[ConfigAnnotation]; before == "" || after != before {
		t.Errorf("another version changes the digest of the configuration from %q to %q", before, after)
	}
	in.Config.Cluster.Spec.ControlPlaneConfiguration.CertSANs = []string{"example.com"}
	if after := build(t, in).ControlPlane.Annotations[ConfigAnnotation]; after == before {
		t.Error("another configuration has the same digest")
	}
}
