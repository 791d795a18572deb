package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// changeWith returns a GitChange with a commit and conditions.
func changeWith(commit string, conditions ...metav1.Condition) *droverv1.GitChange {
	return &droverv1.GitChange{Status: droverv1.GitChangeStatus{Commit: commit, Conditions: conditions}}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestStateOfAGitChangeNamesWhatItWaitsFor(t *testing.T) {
	committedTrue := condition(droverv1.GitCommitted, metav1.ConditionTrue, droverv1.GitCommittedReason, "")
	failed := func(reason, message string) metav1.Condition {
		return condition(droverv1.GitCommitted, metav1.ConditionFalse, reason, message)
	}
	for name, tt := range map[string]struct {
		change *droverv1.GitChange
		want   changeState
	}{
		"a new one waits for the manager": {changeWith(""), changeState{waiting: "Waiting for the manager to commit the change"}},
		"a queued one names what comes first": {
			changeWith("", condition(droverv1.GitCommitted, metav1.ConditionUnknown, "Queued", "Waiting for GitChange one-a")),
			changeState{waiting: "Waiting for the manager to commit the change: Waiting for GitChange one-a"},
		},
		"an outage waits for the Git server": {
			changeWith("", failed(droverv1.GitUnavailableReason, "connection refused")), changeState{waiting: "Waiting for the Git server: connection refused"},
		},
		"a protected branch needs somebody": {
			changeWith("", failed(droverv1.GitDeniedReason, "protected")), changeState{waiting: "Waiting for access to the repository: protected", problem: "protected"},
		},
		"invalid objects are final": {changeWith("", failed(droverv1.GitInvalidReason, "two files")), changeState{problem: "two files", final: true}},
		"a commit waits for Flux": {
			changeWith("0123456789abcdef", committedTrue, condition(droverv1.GitApplied, metav1.ConditionFalse, droverv1.GitWaitingReason, "")),
			changeState{stage: committed, waiting: "Waiting for Flux to apply commit 0123456789ab"},
		},
		"a spec that Flux can't apply needs somebody": {
			changeWith("0123456789abcdef", committedTrue, condition(droverv1.GitApplied, metav1.ConditionFalse, droverv1.GitApplyFailedReason, "denied")),
			changeState{stage: committed, waiting: "Waiting for Flux to apply commit 0123456789ab: denied", problem: "denied"},
		},
		"an applied commit is done": {
			changeWith("0123", committedTrue, condition(droverv1.GitApplied, metav1.ConditionTrue, droverv1.GitAppliedReason, "")), changeState{stage: applied},
		},
	} {
		if diff := cmp.Diff(tt.want, stateOf(tt.change), cmp.AllowUnexported(changeState{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProblemsOfAGitChangeCountOnceTheyLast(t *testing.T) {
	start := time.Now()
	f := &changeFollower{grace: time.Minute, last: changeState{problem: "denied"}}
	if err := f.failed(start); err != nil {
		t.Errorf("at once: %v", err)
	}
	if err := f.failed(start.Add(time.Minute)); err == nil {
		t.Error("a problem that lasts is ignored")
	}
	f.last = changeState{}
	if err := f.failed(start.Add(2 * time.Minute)); err != nil {
		t.Errorf("a problem that is solved: %v", err)
	}
	f.last = changeState{problem: "denied"}
	if err := f.failed(start.Add(3 * time.Minute)); err != nil {
		t.Errorf("a second problem counts from the first: %v", err)
	}
	f.last.final = true
	if err := f.failed(start.Add(3 * time.Minute)); err == nil {
		t.Error("a final problem is waited for")
	}
}

func TestRouteFollowsTheConditionOfTheFluxConfig(t *testing.T) {
	yes := condition(anywherev1.RepositoryConnected, metav1.ConditionTrue, anywherev1.RepositoryConnectedReason, "")
	no := condition(anywherev1.RepositoryConnected, metav1.ConditionFalse, anywherev1.RepositoryNotConnectedReason, "no credentials are open to namespace team-a")
	for name, tt := range map[string]struct {
		condition *metav1.Condition
		want      route
	}{
		"connected":     {&yes, route{FluxConfig: "fleet"}},
		"not connected": {&no, route{Reason: `FluxConfig "fleet" is not connected to its repository: no credentials are open to namespace team-a`}},
		"not observed":  {nil, route{Reason: `the manager does not run GitOps: FluxConfig "fleet" is stored and otherwise ignored`}},
	} {
		if diff := cmp.Diff(tt.want, routeFor("fleet", tt.condition)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
