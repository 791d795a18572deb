package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func addOnRelease(cluster string, change func(*addonsv1.HelmReleaseProxy)) addonsv1.HelmReleaseProxy {
	r := addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "cni-" + cluster, Generation: 2}}
	r.Spec = addonsv1.HelmReleaseProxySpec{ClusterRef: corev1.ObjectReference{Name: cluster}, ReleaseName: "cni", ReleaseNamespace: "kube-system", Version: "1.x"}
	r.Status = addonsv1.HelmReleaseProxyStatus{ObservedGeneration: 2, Revision: 3, Status: tool.Deployed, Conditions: []metav1.Condition{
		{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue},
		{Type: addonsv1.ReleaseReady, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason},
	}}
	if change != nil {
		change(&r)
	}
	return r
}

func failedRelease(r *addonsv1.HelmReleaseProxy) {
	r.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ReadyCondition, Status: metav1.ConditionFalse, Message: "* HelmReleaseReady: broken"},
		{Type: addonsv1.ReleaseReady, Status: metav1.ConditionFalse, Reason: addonsv1.InstallOrUpgradeFailedReason, Message: "the chart\n  is broken"},
	}
}

func TestOnClusterReportsTheDecisiveCondition(t *testing.T) {
	ready := OnCluster{Cluster: "a", Release: "cni", Namespace: "kube-system", Version: "1.x", Revision: 3, Status: tool.Deployed, Ready: "True", Reason: "Ready"}
	with := func(change func(*OnCluster)) OnCluster {
		out := ready
		change(&out)
		return out
	}
	for name, tc := range map[string]struct {
		change func(*addonsv1.HelmReleaseProxy)
		want   OnCluster
	}{
		"ready": {nil, ready},
		"with the resolved version": {func(r *addonsv1.HelmReleaseProxy) {
			r.Status.Applied = &addonsv1.AppliedRelease{Version: "1.2.3"}
		}, with(func(o *OnCluster) { o.Version = "1.2.3" })},
		"failed": {failedRelease, with(func(o *OnCluster) {
			o.Ready, o.Reason, o.Message = "False", addonsv1.InstallOrUpgradeFailedReason, "the chart is broken"
		})},
		"on an unavailable cluster": {func(r *addonsv1.HelmReleaseProxy) {
			failedRelease(r)
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
				Type: addonsv1.ClusterAvailable, Status: metav1.ConditionFalse, Reason: addonsv1.NotAvailableReason, Message: "Not connected",
			})
		}, with(func(o *OnCluster) {
			o.Ready, o.Reason, o.Message = "False", addonsv1.NotAvailableReason, "Not connected"
		})},
		"not observed": {func(r *addonsv1.HelmReleaseProxy) { r.Generation = 9 }, with(func(o *OnCluster) {
			o.Ready, o.Message = "Unknown", "Waiting for the controller to observe generation 9"
		})},
		"being deleted": {func(r *addonsv1.HelmReleaseProxy) { r.DeletionTimestamp = ptr.To(metav1.Now()) }, with(func(o *OnCluster) { o.Message = "Deleting" })},
	} {
		r := addOnRelease("a", tc.change)
		if diff := cmp.Diff(tc.want, ReleaseStatus(&r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSummarizeAddOnCountsClusters(t *testing.T) {
	hcp := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cni"}}
	for _, name := range []string{"a", "b", "c"} {
		hcp.Status.MatchingClusters = append(hcp.Status.MatchingClusters, corev1.ObjectReference{Name: name})
	}
	got := SummarizeAddOn(hcp, []addonsv1.HelmReleaseProxy{addOnRelease("b", failedRelease), addOnRelease("a", nil)})
	if got.Matched != 3 || got.ReadyOn != 1 || got.FailedOn != 1 || got.Tool != "Helm" || got.Paused {
		t.Errorf("add-on %+v", got)
	}
	var clusters []string
	for _, c := range got.Clusters {
		clusters = append(clusters, c.Cluster+" "+c.Ready)
	}
	if diff := cmp.Diff([]string{"a True", "b False", "c Unknown"}, clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	hcp.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	if got := SummarizeAddOn(hcp, nil); !got.Paused || got.Clusters[0].Message != "Waiting for the first reconciliation" {
		t.Errorf("paused add-on %+v", got)
	}
}

func TestProgressDescribesTheRollout(t *testing.T) {
	for want, rollout := range map[string]*addonsv1.RolloutStatus{
		"":                                     nil,
		"Progressing, wave 1 of 3, ready on 2": {Phase: addonsv1.RolloutProgressing, Wave: 1, Waves: 3, Updated: 2},
		"Paused, wave 2 of 2, ready on 0, failed on 1": {Phase: addonsv1.RolloutPaused, Wave: 2, Failed: 1},
	} {
		if got := (AddOn{Rollout: rollout}).Progress(); got != want {
			t.Errorf("progress %q, want %q", got, want)
		}
	}
}

func TestVersionDescribesHowItIsSelected(t *testing.T) {
	for want, spec := range map[string]addonsv1.HelmChartProxySpec{
		"":                      {},
		"1.x":                   {Version: "1.x"},
		"{{ .v }}":              {Version: "1.x", Orchestration: addonsv1.Orchestration{VersionTemplate: "{{ .v }}"}},
		"by Kubernetes version": {Orchestration: addonsv1.Orchestration{VersionTemplate: "{{ .v }}", Versions: []addonsv1.VersionRule{{}}}},
	} {
		if got := version(&spec); got != want {
			t.Errorf("version %q, want %q", got, want)
		}
	}
}

func TestGroupedMergesEqualOutlooks(t *testing.T) {
	keep, upgrade := plan.Unchanged, plan.Upgrade
	got := grouped([]Outlook{
		{Clusters: []string{"a"}, Action: keep},
		{Clusters: []string{"b"}, Error: "unreachable"},
		{Clusters: []string{"c"}, Action: upgrade, Version: "2"},
		{Clusters: []string{"d"}, Action: keep},
		{Clusters: []string{"e"}, Action: upgrade, Version: "3"},
		{Clusters: []string{"f"}, Action: upgrade, Version: "2"},
	})
	want := []Outlook{
		{Clusters: []string{"c", "f"}, Action: upgrade, Version: "2"},
		{Clusters: []string{"e"}, Action: upgrade, Version: "3"},
		{Clusters: []string{"a", "d"}, Action: keep},
		{Clusters: []string{"b"}, Error: "unreachable"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFieldsNamesWhatDiffersWithoutValues(t *testing.T) {
	a := addonsv1.HelmReleaseProxySpec{ChartName: "cni", Version: "1", Values: "password: canary"}
	b := addonsv1.HelmReleaseProxySpec{ChartName: "cni", Version: "2", Values: "password: other", Tool: addonsv1.Manifests}
	if diff := cmp.Diff([]string{"tool", "values", "version"}, fields(a, b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := fields(a, a); len(got) != 0 {
		t.Errorf("fields %v of equal specs", got)
	}
}

func TestObjectsHideGeneratedReleaseNames(t *testing.T) {
	change := tool.Change{Object: tool.Object{Namespace: "ns", Name: "cni-1f2e-node"}, Action: tool.Update, Diff: `name: "cni-1f2e"`}
	for generated, want := range map[string]Object{
		"":         {Action: "Update", Namespace: "ns", Name: "cni-1f2e-node", Diff: `name: "cni-1f2e"`},
		"cni-1f2e": {Action: "Update", Namespace: "ns", Name: "<release>-node", Diff: `name: "<release>"`},
	} {
		if diff := cmp.Diff([]Object{want}, objects([]tool.Change{change}, generated)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", generated, diff)
		}
	}
}
