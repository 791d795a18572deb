package document_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/document"
)

func TestEdit(t *testing.T) {
	add := func(object map[string]any) {
		list, _ := object["resources"].([]any)
		object["resources"] = append(list, "new.yaml")
	}
	for _, one := range []struct{ name, file, want, err string }{
		{"an empty file gets an object", "", "resources:\n- new.yaml\n", ""},
		{"comments stay above a new object", "# Mine.\n", "# Mine.\nresources:\n- new.yaml\n", ""},
		{"a separator stays in front", "---\n", "---\nresources:\n- new.yaml\n", ""},
		{"a line without its end is completed", "--- # mine", "--- # mine\nresources:\n- new.yaml\n", ""},
		{"a byte order mark stays", "\ufeff", "\ufeffresources:\n- new.yaml\n", ""},
		{"items and comments stay", "# Mine.\nresources:\n  - a.yaml # first\n\n# End.\n", "# Mine.\nresources:\n  - a.yaml # first\n  - new.yaml\n\n# End.\n", ""},
		{"a list in flow style stays one", "resources: [] # none\n", "resources: [new.yaml] # none\n", ""},
		{"two objects are rejected", "a: b\n---\nc: d\n", "", "one document"},
		{"a list is rejected", "- a\n", "", "one document"},
	} {
		t.Run(one.name, func(t *testing.T) {
			got, err := document.Edit([]byte(one.file), add)
			if one.err != "" {
				if err == nil || !strings.Contains(err.Error(), one.err) {
					t.Errorf("got error %v, want %q", err, one.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLine(t *testing.T) {
	const file = "# A file.\n---\nkind: A\nmetadata: {name: a}\n---\n\nkind: B\nmetadata:\n  name: b\n  labels:\n    example.com/x: \"y\"\nspec:\n  groups:\n  - name: x\n  - name: y\n    count: 1\n"
	for _, one := range []struct {
		name, path string
		want       int
	}{
		{"a", "metadata.name", 4},
		{"b", "", 7},
		{"b", "spec.groups[1].count", 16},
		{"b", "spec.groups[1].missing.field", 15},
		{"b", "spec.groups[7]", 13},
		{"b", "metadata.labels[example.com/x]", 11},
		{"", "spec", 12},
		{"c", "spec", 0},
	} {
		kind := "B"
		if one.name == "a" {
			kind = "A"
		}
		if got := document.Line([]byte(file), kind, one.name, one.path); got != one.want {
			t.Errorf("%s %s is on line %d, want %d", one.name, one.path, got, one.want)
		}
	}
}
