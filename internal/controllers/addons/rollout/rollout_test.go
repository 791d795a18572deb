package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// State of a cluster in a word: "-" has the old, "~" is changing, "+" is ready, "!" has failed, "<"
// is rolled back.
func cluster(i int, state rune) Cluster {
	c := Cluster{Name: string(rune('a' + i)), Labels: map[string]string{"odd": fmt.Sprint(i%2 == 1)}}
	switch state {
	case '~':
		c.OnTarget = true
	case '+':
		c.OnTarget, c.Ready, c.ReadySince = true, true, now.Add(-time.Minute)
	case '!':
		c.OnTarget, c.Failed = true, true
	case '<':
		c.RolledBack = true
	}
	return c
}

func clusters(states string) []Cluster {
	var out []Cluster
	for i, state := range states {
		out = append(out, cluster(i, state))
	}
	return out
}

func number(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }

func percent(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }

func odd() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"odd": "true"}}
}

func TestLastWaveTakesTheRest(t *testing.T) {
	for _, tc := range []struct {
		name  string
		count int
		spec  []addonsv1.Wave
		want  []string
	}{
		{"no waves", 3, nil, []string{"abc"}},
		{"no clusters", 0, []addonsv1.Wave{{Size: number(1)}}, []string{""}},
		{"by count", 6, []addonsv1.Wave{{Size: number(1)}, {Size: number(2)}}, []string{"a", "bc", "def"}},
		{"by percent of all, rounded up", 6, []addonsv1.Wave{{Size: percent("10%")}, {Size: percent("50%")}}, []string{"a", "bcd", "ef"}},
		{"all of them", 2, []addonsv1.Wave{{Size: percent("100%")}}, []string{"ab"}},
		{"by label", 5, []addonsv1.Wave{{ClusterSelector: odd()}}, []string{"bd", "ace"}},
		{"some of a label", 6, []addonsv1.Wave{{ClusterSelector: odd(), Size: number(2)}, {ClusterSelector: odd()}}, []string{"bd", "f", "ace"}},
		{"more than there are", 2, []addonsv1.Wave{{Size: number(5)}, {Size: number(1)}}, []string{"ab", ""}},
		{"a broken selector", 2, []addonsv1.Wave{{ClusterSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "?"}},
		}}}, []string{"", "ab"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []Cluster
			for i := range tc.count {
				all = append(all, cluster(i, '-'))
			}
			var got []string
			for _, wave := range Waves(all, tc.spec) {
				names := ""
				for _, c := range wave {
					names += c.Name
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("waves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllowedClusters(t *testing.T) {
	waves := []addonsv1.Wave{{Size: number(1)}, {Size: number(2)}}
	at := func(phase addonsv1.RolloutPhase, wave int32) *addonsv1.RolloutStatus {
		return &addonsv1.RolloutStatus{Revision: "r", LastGood: "g", Phase: phase, Wave: wave}
	}
	for _, tc := range []struct {
		name    string
		states  string
		spec    addonsv1.Rollout
		status  *addonsv1.RolloutStatus
		resume  string
		allowed string
		phase   addonsv1.RolloutPhase
		wave    int32
		next    time.Duration
		back    bool
	}{
		{name: "begins with the first wave", states: "-----", spec: addonsv1.Rollout{Waves: waves}, allowed: "a", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "waits for it", states: "~----", spec: addonsv1.Rollout{Waves: waves}, allowed: "a", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "goes on", states: "+----", spec: addonsv1.Rollout{Waves: waves}, allowed: "abc", phase: addonsv1.RolloutProgressing, wave: 2},
		{name: "takes the rest last", states: "+++--", spec: addonsv1.Rollout{Waves: waves}, allowed: "abcde", phase: addonsv1.RolloutProgressing, wave: 3},
		{name: "is complete", states: "+++++", spec: addonsv1.Rollout{Waves: waves}, allowed: "abcde", phase: addonsv1.RolloutComplete, wave: 3},
		{name: "soaks", states: "+----", spec: addonsv1.Rollout{Waves: waves, Soak: &metav1.Duration{Duration: 3 * time.Minute}}, allowed: "a", phase: addonsv1.RolloutSoaking, wave: 1, next: 2 * time.Minute},
		{name: "has soaked", states: "+----", spec: addonsv1.Rollout{Waves: waves, Soak: &metav1.Duration{Duration: time.Minute}}, allowed: "abc", phase: addonsv1.RolloutProgressing, wave: 2},
		{name: "does not soak at the end", states: "+", spec: addonsv1.Rollout{Waves: waves[:1], Soak: &metav1.Duration{Duration: time.Hour}}, allowed: "a", phase: addonsv1.RolloutComplete, wave: 1},
		{name: "breaks while soaking", states: "~----", spec: addonsv1.Rollout{Waves: waves, Soak: &metav1.Duration{Duration: time.Hour}}, status: at(addonsv1.RolloutSoaking, 1), allowed: "a", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "few at a time", states: "-----", spec: addonsv1.Rollout{MaxUnavailable: number(2)}, allowed: "ab", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "few at a time, some changing", states: "+~---", spec: addonsv1.Rollout{MaxUnavailable: number(2)}, allowed: "abc", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "a part at a time, rounded down", states: "-----", spec: addonsv1.Rollout{MaxUnavailable: percent("50%")}, allowed: "ab", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "one at a time at least", states: "-----", spec: addonsv1.Rollout{MaxUnavailable: percent("1%")}, allowed: "a", phase: addonsv1.RolloutProgressing, wave: 1},
		{name: "pauses at the first failure", states: "!----", spec: addonsv1.Rollout{Waves: waves}, allowed: "", phase: addonsv1.RolloutPaused, wave: 1},
		{name: "bears failures", states: "!----", spec: addonsv1.Rollout{Waves: waves, PauseAfter: ptr.To[int32](2)}, allowed: "abc", phase: addonsv1.RolloutProgressing, wave: 2},
		{name: "stays paused", states: "+----", spec: addonsv1.Rollout{Waves: waves}, status: at(addonsv1.RolloutPaused, 1), allowed: "", phase: addonsv1.RolloutPaused, wave: 1},
		{name: "is resumed", states: "!----", spec: addonsv1.Rollout{Waves: waves}, status: at(addonsv1.RolloutPaused, 1), resume: "now", allowed: "abc", phase: addonsv1.RolloutProgressing, wave: 2},
		{name: "rolls back", states: "!++--", spec: addonsv1.Rollout{Waves: waves, OnFailure: Rollback}, status: at(addonsv1.RolloutProgressing, 2), allowed: "", phase: addonsv1.RolloutRollingBack, wave: 2, back: true},
		{name: "is rolled back", states: "<<<<<", spec: addonsv1.Rollout{Waves: waves, OnFailure: Rollback}, status: at(addonsv1.RolloutRollingBack, 2), allowed: "", phase: addonsv1.RolloutPaused, wave: 2},
		{name: "has nothing to roll back to", states: "!----", spec: addonsv1.Rollout{Waves: waves, OnFailure: Rollback}, allowed: "", phase: addonsv1.RolloutPaused, wave: 1},
		{name: "lets newcomers in when complete", states: "++++-", spec: addonsv1.Rollout{Waves: waves}, status: at(addonsv1.RolloutComplete, 3), allowed: "abcde", phase: addonsv1.RolloutComplete, wave: 3},
		{name: "does not go back to a wave that broke", states: "~++--", spec: addonsv1.Rollout{Waves: waves}, status: at(addonsv1.RolloutProgressing, 3), allowed: "abcde", phase: addonsv1.RolloutProgressing, wave: 3},
		{name: "restarts", states: "+----", spec: addonsv1.Rollout{Waves: waves}, status: &addonsv1.RolloutStatus{Revision: "old", Phase: addonsv1.RolloutPaused, Wave: 3}, allowed: "abc", phase: addonsv1.RolloutProgressing, wave: 2},
		{name: "has no clusters", states: "", spec: addonsv1.Rollout{Waves: waves}, allowed: "", phase: addonsv1.RolloutComplete, wave: 2},
		{name: "has fewer waves than before", states: "+-", spec: addonsv1.Rollout{}, status: at(addonsv1.RolloutProgressing, 3), allowed: "ab", phase: addonsv1.RolloutProgressing, wave: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan := Decide(Input{Clusters: clusters(tc.states), Spec: &tc.spec, Status: tc.status, Revision: "r", Resume: tc.resume, Now: now})
			if got := joined(plan.Allowed); got != tc.allowed {
				t.Errorf("allowed are %q, want %q", got, tc.allowed)
			}
			if plan.Status.Phase != tc.phase || plan.Status.Wave != tc.wave || plan.Next != tc.next || plan.Back != tc.back {
				t.Errorf("phase %s, wave %d, next %s, back %t", plan.Status.Phase, plan.Status.Wave, plan.Next, plan.Back)
			}
			again := Decide(Input{Clusters: clusters(tc.states), Spec: &tc.spec, Status: plan.Status, Revision: "r", Resume: tc.resume, Now: now})
			if diff := cmp.Diff(plan, again); diff != "" {
				t.Errorf("a second look sees something else (-first +second):\n%s", diff)
			}
		})
	}
}

func TestClockNeitherSkipsNorExtendsSoaking(t *testing.T) {
	spec := &addonsv1.Rollout{Waves: []addonsv1.Wave{{Size: number(1)}}, Soak: &metav1.Duration{Duration: time.Hour}}
	ready := clusters("+-")
	ready[0].ReadySince = now.AddDate(1, 0, 0)
	for name, status := range map[string]*addonsv1.RolloutStatus{
		"before it began to soak": {Revision: "r", Wave: 1, Phase: addonsv1.RolloutProgressing, Since: &metav1.Time{Time: now.AddDate(0, 0, -1)}},
		"while it soaks":          {Revision: "r", Wave: 1, Phase: addonsv1.RolloutSoaking, Since: &metav1.Time{Time: now.AddDate(1, 0, 0)}},
	} {
		at := func(after time.Duration, was *addonsv1.RolloutStatus) Plan {
			return Decide(Input{Clusters: ready, Spec: spec, Status: was, Revision: "r", Now: now.Add(after)})
		}
		first := at(0, status)
		if first.Status.Phase != addonsv1.RolloutSoaking || first.Next != time.Hour || !first.Status.Since.Time.Equal(now) {
			t.Errorf("set back a year %s, it is %s since %s, for %s", name, first.Status.Phase, first.Status.Since, first.Next)
		}
		if second := at(time.Minute, first.Status); second.Next != 59*time.Minute || !second.Status.Since.Equal(first.Status.Since) {
			t.Errorf("set back a year %s, it soaks for another %s a minute later", name, second.Next)
		}
		if last := at(time.Hour, first.Status); last.Status.Wave != 2 {
			t.Errorf("set back a year %s, it is %s after an hour", name, last.Status.Phase)
		}
	}
	ready[0].ReadySince = now.AddDate(-1, 0, 0)
	if plan := Decide(Input{Clusters: ready, Spec: spec, Revision: "r", Now: now}); plan.Status.Wave != 2 {
		t.Errorf("set forward a year, it is %s", plan.Status.Phase)
	}
}

func joined(names map[string]bool) string {
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	out := ""
	for _, name := range all {
		out += name
	}
	return out
}

func TestWithoutRolloutAllClustersAreAllowed(t *testing.T) {
	plan := Decide(Input{Clusters: clusters("-!~+"), Status: &addonsv1.RolloutStatus{Phase: addonsv1.RolloutPaused}, Now: now})
	if got := joined(plan.Allowed); got != "abcd" || plan.Status != nil || plan.Back || plan.Next != 0 {
		t.Errorf("plan: %+v", plan)
	}
}

func TestLastGoodIsTheLastCompleteRevision(t *testing.T) {
	spec := &addonsv1.Rollout{}
	was := &addonsv1.RolloutStatus{Revision: "1", Phase: addonsv1.RolloutComplete}
	second := Decide(Input{Clusters: clusters("!"), Spec: spec, Status: was, Revision: "2", Now: now}).Status
	third := Decide(Input{Clusters: clusters("-"), Spec: spec, Status: second, Revision: "3", Now: now}).Status
	if second.LastGood != "1" || third.LastGood != "1" || second.Phase != addonsv1.RolloutPaused || third.Phase != addonsv1.RolloutProgressing {
		t.Errorf("second %+v, third %+v", second, third)
	}
}

func TestEveryRolloutEnds(t *testing.T) {
	for _, spec := range []addonsv1.Rollout{
		{},
		{Waves: []addonsv1.Wave{{Size: number(1)}, {Size: percent("30%")}, {ClusterSelector: odd()}}},
		{MaxUnavailable: number(1)},
		{Waves: []addonsv1.Wave{{ClusterSelector: odd()}}, MaxUnavailable: percent("25%"), Soak: &metav1.Duration{Duration: time.Minute}},
	} {
		all, status, at := clusters("---------"), (*addonsv1.RolloutStatus)(nil), now
		for turn := 0; status == nil || status.Phase != addonsv1.RolloutComplete; turn++ {
			if turn > 100 {
				t.Fatalf("%+v is at %+v after %d turns", spec, status, turn)
			}
			plan := Decide(Input{Clusters: all, Spec: &spec, Status: status, Revision: "r", Now: at})
			status, at = plan.Status, at.Add(max(plan.Next, time.Second))
			for i := range all {
				if plan.Allowed[all[i].Name] && !all[i].Ready {
					all[i].Ready, all[i].ReadySince = all[i].OnTarget, at
					all[i].OnTarget = true
				}
			}
		}
		if status.Updated != 9 {
			t.Errorf("%+v ended with %d clusters updated", spec, status.Updated)
		}
	}
}
