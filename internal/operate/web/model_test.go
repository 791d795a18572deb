package web

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// TestPageKnowsTheAnswers compares the types of the page with what the server sends.
func TestPageKnowsTheAnswers(t *testing.T) {
	source, err := os.ReadFile("../../../web/src/model.ts")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?s)export interface (\w+) \{(.*?)\n\}`).FindAllStringSubmatch(string(source), -1) {
		for _, f := range regexp.MustCompile(`(?m)^ {2}(\w+)\??:`).FindAllStringSubmatch(m[2], -1) {
			page[m[1]] = append(page[m[1]], f[1])
		}
	}
	for name, value := range map[string]any{
		"Count": Count{}, "Row": Row{}, "TreeNode": Node{}, "Link": inspect.Link{}, "Answer": inspect.Answer{}, "Stage": inspect.Stage{}, "Operation": inspect.Operation{},
		"Release": Release{}, "PackageItem": PackageItem{}, "Group": Group{}, "Action": Action{}, "Detail": Detail{}, "Entry": inspect.Entry{},
		"Difference": lifecycle.Difference{}, "Plan": Plan{}, "AddOns": AddOns{}, "MachineItem": MachineItem{}, "PlaneInfo": PlaneInfo{},
		"Repository": Repository{}, "InRepository": InRepository{}, "Commit": Commit{}, "Server": inspect.Server{}, "Check": inspect.Check{},
		"AuditItem": AuditItem{}, "AuditedChange": droverv1.AuditedChange{}, "AddOnDetail": AddOnDetail{}, "Revision": inspect.Revision{},
	} {
		want := slices.Sorted(maps.Keys(fields(reflect.TypeOf(value))))
		got := slices.Sorted(slices.Values(page[name]))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s in model.ts (-sent +known):\n%s", name, diff)
		}
	}
}

// fields returns the names of the fields of a type in JSON.
func fields(t reflect.Type) map[string]bool {
	out := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			maps.Copy(out, fields(embedded))
		default:
			out[name] = true
		}
	}
	return out
}
