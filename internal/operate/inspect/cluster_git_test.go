package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

func TestWhyMentionsUnfinishedChangesInGit(t *testing.T) {
	change := func(name, cluster string, conditions ...metav1.Condition) droverv1.GitChange {
		return droverv1.GitChange{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: droverv1.GitChangeSpec{Cluster: cluster, Action: droverv1.GitWrite},
			Status: droverv1.GitChangeStatus{Conditions: conditions},
		}
	}
	is := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	config := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}, Status: anywherev1.FluxConfigStatus{Conditions: []metav1.Condition{
		is(anywherev1.RepositoryConnected, metav1.ConditionTrue, ""), is(anywherev1.RepositoryFetched, metav1.ConditionFalse, "Connection refused"),
	}}}
	changes := []droverv1.GitChange{
		change("one-waits", "one", is(droverv1.GitCommitted, metav1.ConditionFalse, "The branch is protected")),
		change("one-new", "one"),
		change("one-done", "one", is(droverv1.GitChangeReady, metav1.ConditionTrue, "")),
		change("one-applied", "one", is(droverv1.GitCommitted, metav1.ConditionTrue, ""), is(droverv1.GitApplied, metav1.ConditionTrue, "")),
		change("other", "two"),
	}
	root := &Node{Kind: kindCluster, Name: "one", Conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionTrue, "")}}
	root.Children = GitNodes("one", config, changes)
	answer := Why(root, time.Now())
	var got []string
	for _, link := range answer.Git {
		got = append(got, link.String())
	}
	want := []string{
		"FluxConfig fleet is not RepositoryFetched: Connection refused",
		"GitChange one-waits is not Committed: The branch is protected",
		"GitChange one-new: waiting for the controller to observe it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !answer.Ready {
		t.Error("a change in Git keeps a ready cluster from being so")
	}
	var all []string
	for _, link := range gitLinks([]anywherev1.FluxConfig{*config, {}}, changes) {
		all = append(all, link.String())
	}
	want = []string{want[0], want[2], want[1], "GitChange other: waiting for the controller to observe it"}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("of all clusters (-want +got):\n%s", diff)
	}
	if more := GitNodes("one", &anywherev1.FluxConfig{}, nil); len(more) > 0 {
		t.Errorf("on a plane without GitOps: %v", more)
	}
}
