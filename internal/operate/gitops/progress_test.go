package gitops

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

func TestProgressOfAChange(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason}
	}
	committed := is(droverv1.GitCommitted, metav1.ConditionTrue, droverv1.GitCommittedReason)
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		want       Progress
		message    string
	}{
		"not observed":         {nil, Pending, "Waiting for the controller"},
		"the server is down":   {[]metav1.Condition{is(droverv1.GitCommitted, metav1.ConditionFalse, droverv1.GitUnavailableReason)}, Pending, droverv1.GitUnavailableReason},
		"the branch is closed": {[]metav1.Condition{is(droverv1.GitCommitted, metav1.ConditionFalse, droverv1.GitDeniedReason)}, Rejected, droverv1.GitDeniedReason},
		"Flux has not come to it": {
			[]metav1.Condition{committed, is(droverv1.GitApplied, metav1.ConditionUnknown, droverv1.GitWaitingReason)}, Pending, droverv1.GitWaitingReason,
		},
		"Flux can't apply it": {
			[]metav1.Condition{committed, is(droverv1.GitApplied, metav1.ConditionFalse, droverv1.GitApplyFailedReason)}, Rejected, droverv1.GitApplyFailedReason,
		},
		"a later change was made": {[]metav1.Condition{is(droverv1.GitCommitted, metav1.ConditionFalse, droverv1.GitSupersededReason)}, Superseded, droverv1.GitSupersededReason},
		"applied":                 {[]metav1.Condition{committed, is(droverv1.GitChangeReady, metav1.ConditionTrue, droverv1.GitAppliedReason)}, Applied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &droverv1.GitChange{Status: droverv1.GitChangeStatus{Conditions: tt.conditions}}
			if got, message := ProgressOf(g); got != tt.want || message != tt.message {
				t.Errorf("got %s, %q; want %s, %q", got, message, tt.want, tt.message)
			}
		})
	}
}

func TestSummaryKeepsToItsNamespace(t *testing.T) {
	config := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "fleet"}}
	inGit := func(namespace, name string) anywherev1.Cluster {
		c := anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		c.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "fleet"}
		return c
	}
	applied := func(namespace, cluster, reason string) unstructured.Unstructured {
		status := "False"
		if reason == stateReady {
			status = "True"
		}
		k := unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"lastAppliedRevision": "main@sha1:1", "conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": reason}},
		}}}
		k.SetNamespace(namespace)
		k.SetLabels(map[string]string{anywherev1.GitClusterLabel: cluster})
		return k
	}
	o := Objects{
		Clusters: []anywherev1.Cluster{inGit("team-a", "new"), inGit("team-a", "done"), inGit("team-b", "other"), {ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "no-git"}}},
		Applied:  []unstructured.Unstructured{applied("team-a", "done", stateReady), applied("team-a", "broken", "BuildFailed"), applied("team-a", "late", "Progressing"), applied("team-b", "other", stateReady)},
		Changes: []droverv1.GitChange{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x"}, Spec: droverv1.GitChangeSpec{Cluster: "done"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "y"}, Spec: droverv1.GitChangeSpec{Cluster: "done"}},
		},
	}
	summary := func() map[string]Progress {
		out := map[string]Progress{}
		for _, c := range Summarize(config, o).Clusters {
			out[c.Name] = c.Progress()
			if c.Name == "done" && len(c.Changes) != 1 {
				t.Errorf("unfinished changes %v, want the one in the namespace", c.Changes)
			}
		}
		return out
	}
	want := map[string]Progress{"new": Pending, "done": Applied, "broken": Rejected, "late": Pending}
	if diff := cmp.Diff(want, summary()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.Applied, o.Unread = nil, true
	if diff := cmp.Diff(map[string]Progress{"new": Unknown, "done": Unknown}, summary()); diff != "" {
		t.Errorf("without the privilege (-want +got):\n%s", diff)
	}
}
