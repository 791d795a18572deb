package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

func TestEventsAreShownInAPipe(t *testing.T) {
	var out bytes.Buffer
	p := ui.NewPhases(&ui.IO{Err: &out}, 5)
	report := show(p)
	for _, e := range []phase.Event{
		{Phase: "A", Status: phase.Before},
		{Phase: "B", Status: phase.Started},
		{Phase: "B", Status: phase.Waiting, Detail: "Creating machine 1/2"},
		{Phase: "B", Status: phase.Note, Detail: "worth knowing"},
		{Phase: "B", Status: phase.Done, Took: 2 * time.Second},
		{Phase: "C", Status: phase.Started},
		{Phase: "C", Status: phase.Skipped, Detail: "nothing to do"},
		{Phase: "D", Status: phase.Started},
		{Phase: "D", Status: phase.Failed, Took: time.Second},
		{Phase: "E", Status: phase.Started},
		{Phase: "E", Status: phase.Interrupted, Took: time.Second},
	} {
		report(e)
	}
	p.Close()
	var got [][]string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"✓", "A", "-", "done", "by", "an", "earlier", "run"},
		{"2/5", "B"},
		{"0.0s", "Creating", "machine", "1/2"},
		{"worth", "knowing"},
		{"✓", "B", "2.0s"},
		{"3/5", "C"},
		{"-", "C", "-", "nothing", "to", "do"},
		{"4/5", "D"},
		{"✗", "D", "1.0s"},
		{"5/5", "E"},
		{"✗", "E", "1.0s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestPlanIsPrintedWithItsChanges(t *testing.T) {
	plan := &phase.Plan{Command: "create cluster", Cluster: "one", Phases: []phase.Phase{
		{Name: "First", Summary: "Check"},
		{Name: "Second", Summary: "Create", Changes: []string{"creates Cluster one", "writes a file"}},
	}}
	for name, tt := range map[string]struct {
		format func(int, *phase.Phase) string
		want   string
	}{
		"short": {phaseLine, "create cluster one, in 2 phases:\n  1  First                         Check\n  2  Second                        Create\n\n"},
		"with changes": {phaseWithChanges, "create cluster one, in 2 phases:\n  1  First                         Check\n  2  Second                        Create\n" +
			"       - creates Cluster one\n       - writes a file\n\n"},
	} {
		var out bytes.Buffer
		if err := printPlan(&out, plan, tt.format); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(planned{"create cluster", "one", []plannedPhase{{"First", "Check", nil}, {"Second", "Create", []string{"creates Cluster one", "writes a file"}}}}, describePlan(plan)); diff != "" {
		t.Errorf("for programs (-want +got):\n%s", diff)
	}
}

func TestTimesListSkippedPhases(t *testing.T) {
	var out bytes.Buffer
	printTimes(&out, []phase.Result{{Name: "A", Seconds: 1, Before: true}, {Name: "B", Skipped: "nothing to do"}, {Name: "C", Seconds: 2.04}}, 3*time.Second)
	for _, want := range []string{"1.0s  done by an earlier run", "-  nothing to do", "2.0s\n", "3.0s\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the times lack %q:\n%s", want, out.String())
		}
	}
}
