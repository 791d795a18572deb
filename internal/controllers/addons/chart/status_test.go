package chart

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

func describe(c metav1.Condition) string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

func problemsOn(reason string, n int) []problem {
	var out []problem
	for i := range n {
		out = append(out, problem{cluster: fmt.Sprintf("c%d", i), reason: reason, err: errors.New("broken")})
	}
	return out
}

func TestSpecsCondition(t *testing.T) {
	behind := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "cni-a", Generation: 2}}
	for name, tc := range map[string]struct {
		facts *facts
		want  string
	}{
		"nothing to do":           {facts: &facts{}, want: "True UpToDate"},
		"an invalid selector":     {facts: &facts{selectionErr: errors.New("reading it: no"), waiting: []string{"a"}}, want: "False ClusterSelectionFailed: Reading it: no"},
		"a problem with all":      {facts: &facts{problems: []problem{{reason: addonsv1.ValueParsingFailedReason, err: errors.New("no template")}}}, want: "False ValueParsingFailed: No template"},
		"a problem with one":      {facts: &facts{problems: problemsOn(addonsv1.CreationFailedReason, 1)}, want: "False HelmReleaseProxyCreationFailed: Cluster c0: broken"},
		"problems with many":      {facts: &facts{problems: problemsOn(addonsv1.DeletionFailedReason, 5)}, want: "False HelmReleaseProxyDeletionFailed: Cluster c0: broken; cluster c1: broken; cluster c2: broken; problems on 2 more clusters"},
		"values before creations": {facts: &facts{problems: append(problemsOn(addonsv1.CreationFailedReason, 1), problemsOn(addonsv1.ValueParsingFailedReason, 1)...)}, want: "False ValueParsingFailed: Cluster c0: broken"},
		"reinstalling":            {facts: &facts{reinstalling: []string{"b", "a"}, waiting: []string{"c"}}, want: "False HelmReleaseProxyReinstalling: Waiting for releases to be uninstalled from clusters a, b"},
		"waiting for a wave":      {facts: &facts{waiting: []string{"b", "a"}}, want: "False HelmReleaseProxySpecsUpdating: Rollout has not reached clusters a, b"},
		"not observed":            {facts: &facts{after: []*addonsv1.HelmReleaseProxy{behind}}, want: "False HelmReleaseProxySpecsUpdating: Waiting for the controller to observe HelmReleaseProxies cni-a"},
	} {
		if got := describe(specsCondition(tc.facts)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestRolloutMessage(t *testing.T) {
	status := addonsv1.RolloutStatus{Wave: 2, Waves: 3, Updated: 5, Failed: 1, LastGood: "abc"}
	for phase, want := range map[addonsv1.RolloutPhase]string{
		addonsv1.RolloutComplete:    "",
		addonsv1.RolloutProgressing: "Wave 2 of 3 is ready on 5 clusters and failed on 1",
		addonsv1.RolloutSoaking:     "Wave 2 of 3 is ready on 5 clusters and failed on 1",
		addonsv1.RolloutPaused: "Wave 2 of 3 is ready on 5 clusters and failed on 1; " +
			"to resume, change the spec or the value of annotation addons.cluster.x-k8s.io/resume-rollout",
		addonsv1.RolloutRollingBack: "Wave 2 of 3 is ready on 5 clusters and failed on 1; rolling back all clusters to revision abc",
	} {
		status.Phase = phase
		if got := rolloutMessage(&status); got != want {
			t.Errorf("%s: got %q, want %q", phase, got, want)
		}
	}
}

func TestProxiesCondition(t *testing.T) {
	release := func(name string, status metav1.ConditionStatus) *addonsv1.HelmReleaseProxy {
		r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		conditions.Set(r, metav1.Condition{Type: clusterv1.ReadyCondition, Status: status, Reason: "X", Message: "because"})
		return r
	}
	for name, tc := range map[string]struct {
		releases []*addonsv1.HelmReleaseProxy
		status   metav1.ConditionStatus
		contains string
	}{
		"no clusters": {status: metav1.ConditionTrue},
		"all ready":   {releases: []*addonsv1.HelmReleaseProxy{release("a", "True"), release("b", "True")}, status: metav1.ConditionTrue, contains: "(sources: HelmReleaseProxy/a, HelmReleaseProxy/b)"},
		"one failed":  {releases: []*addonsv1.HelmReleaseProxy{release("a", "True"), release("b", "False")}, status: metav1.ConditionFalse, contains: "because"},
	} {
		if got := proxiesCondition(tc.releases); got.Status != tc.status || !strings.Contains(got.Message, tc.contains) {
			t.Errorf("%s: got %s, want %s and %q", name, describe(got), tc.status, tc.contains)
		}
	}
}

func TestRetriableSkipsTerminalProblems(t *testing.T) {
	final := problem{cluster: "a", err: errors.New("final"), final: true}
	passing := problem{cluster: "b", err: errors.New("timeout")}
	if err := (&facts{problems: []problem{final}}).retriable(); err != nil {
		t.Errorf("error %v, want none for a final problem", err)
	}
	if err := (&facts{problems: []problem{final, passing}}).retriable(); err == nil || err.Error() != `cluster "b": timeout` {
		t.Errorf("error %v", err)
	}
}

func TestReferencesNameClusters(t *testing.T) {
	got := references([]*clusterv1.Cluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}})
	want := corev1.ObjectReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: "ns", Name: "a"}
	if len(got) != 1 || got[0] != want {
		t.Errorf("references %+v, want %+v", got, want)
	}
}
