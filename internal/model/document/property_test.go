package document_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/model/document"
)

// spot is a value in an object, which can be changed and restored.
type spot struct {
	path  string
	value any
	set   func(any)
}

// spots returns every value below a value.
func spots(path string, value any) []spot {
	var all []spot
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, spot{path + "." + key, value[key], func(v any) { value[key] = v }})
			all = append(all, spots(path+"."+key, value[key])...)
		}
	case []any:
		for i := range value {
			all = append(all, spot{path + "[]", value[i], func(v any) { value[i] = v }})
			all = append(all, spots(path+"[]", value[i])...)
		}
	}
	return all
}

// eachSpot calls a function for every value of the documents in testdata, except those that
// identify an object.
func eachSpot(t *testing.T, do func(t *testing.T, file string, object map[string]any, s spot)) {
	t.Helper()
	for _, name := range []string{"docker", "packet"} {
		data, err := os.ReadFile("../spec/testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for file := range strings.SplitSeq(string(data), "\n---\n") {
			objects, err := document.Objects([]byte(file))
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects: %v", len(objects), err)
			}
			for _, s := range spots("", objects[0]) {
				if s.path != ".apiVersion" && s.path != ".kind" && !strings.HasPrefix(s.path, ".metadata") {
					do(t, file, objects[0], s)
					s.set(s.value)
				}
			}
		}
	}
}

func TestOtherScalarChangesOneLine(t *testing.T) {
	eachSpot(t, func(t *testing.T, file string, object map[string]any, s spot) {
		if text, ok := s.value.(string); ok && strings.Contains(text, "\n") {
			return
		}
		switch s.value.(type) {
		case map[string]any, []any:
			return
		}
		s.set("other")
		got := apply(t, file, object)
		before, after := strings.Split(file, "\n"), strings.Split(got, "\n")
		if len(before) != len(after) {
			t.Fatalf("%s: %d lines became %d:\n%s", s.path, len(before), len(after), got)
		}
		changed := 0
		for i := range before {
			if before[i] != after[i] {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%s: %d lines changed", s.path, changed)
		}
	})
}

func TestAddedKeyKeepsAllLines(t *testing.T) {
	eachSpot(t, func(t *testing.T, file string, object map[string]any, s spot) {
		mapping, ok := s.value.(map[string]any)
		if !ok {
			return
		}
		added := maps.Clone(mapping)
		added["zzz"] = "new"
		s.set(added)
		got := apply(t, file, object)
		if missing := linesMissing(file, got); missing > 1 || (missing == 1 && !strings.Contains(got, "zzz: new}")) {
			t.Errorf("%s: %d lines are missing in:\n%s", s.path, missing, got)
		}
	})
}

func TestRemovedKeyKeepsLinesOfOthers(t *testing.T) {
	eachSpot(t, func(t *testing.T, file string, object map[string]any, s spot) {
		mapping, ok := s.value.(map[string]any)
		if !ok {
			return
		}
		for key := range mapping {
			rest := maps.Clone(mapping)
			delete(rest, key)
			s.set(rest)
			got := apply(t, file, object)
			if added := linesMissing(got, file); added > 1 {
				t.Errorf("%s.%s: removing it added %d lines:\n%s", s.path, key, added, got)
			}
		}
	})
}

func apply(t *testing.T, file string, object map[string]any) string {
	t.Helper()
	got, err := document.Apply([]byte(file), []map[string]any{object}, document.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// linesMissing counts the lines of a text that another text doesn't have.
func linesMissing(text, other string) int {
	count := map[string]int{}
	for line := range strings.SplitSeq(other, "\n") {
		count[line]++
	}
	missing := 0
	for line := range strings.SplitSeq(text, "\n") {
		if count[line] == 0 {
			missing++
			continue
		}
		count[line]--
	}
	return missing
}
