package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]int{
		"the bundle is generated again":              0,
		"the bundle is generated anew":               1,
		"There is no cluster of that name":           1,
		"cluster \"x\" not found":                    0,
		"Ann creates a cluster":                      1,
		"annotations and Anna":                       0,
		"Who makes a workload cluster needs a role.": 1,
		"who may see it?":                            0,
		"it is looked at anew\nin the end":           3,
		"what has to be checked":                     0,
	} {
		if got := check(text); len(got) != want {
			t.Errorf("%q has %v, want %d findings", text, got, want)
		}
	}
	if got := check("fine\nanew")[0]; got.line != 2 || got.instead == "" {
		t.Errorf("got %+v", got)
	}
}

func TestAppliesSkipsGeneratedFiles(t *testing.T) {
	for file, want := range map[string]bool{
		"README.md": true, "internal/plane/plane.go": true, "hack/demo.sh": true, "templates/cni.yaml": true,
		"docs/cli/drover.md": false, "config/crd/x.yaml": false, "api/x/zz_generated.deepcopy.go": false,
		"go.sum": false, "hack/words/rules.go": false,
	} {
		if got := applies(file); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
}

func TestBaselineRoundTrip(t *testing.T) {
	want := map[string]int{"a.go": 2, "b/c.md": 13}
	data := formatBaseline(map[string]int{"a.go": 2, "b/c.md": 13, "none.go": 0})
	got, err := parseBaseline(data)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %s", err, cmp.Diff(want, got))
	}
	if _, err := parseBaseline([]byte("nonsense\n")); err == nil {
		t.Error("nonsense is accepted")
	}
}
