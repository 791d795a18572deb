package document_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/model/document"
)

// objects returns the desired objects of a test, which are documents themselves.
func objects(t testing.TB, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for part := range strings.SplitSeq(text, "\n---\n") {
		var one map[string]any
		if err := yaml.Unmarshal([]byte(part), &one); err != nil {
			t.Fatal(err)
		}
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

// TestApply reads each case from an archive: its description, the file before, the desired objects,
// and the file after. Without "after", nothing may change.
func TestApply(t *testing.T) {
	cases, err := filepath.Glob("testdata/apply/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSpace(string(archive.Comment)), func(t *testing.T) {
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			want, changes := parts["after"]
			if !changes {
				want = parts["before"]
			}
			checkApply(t, parts["before"], parts["desired"], want)
		})
	}
}

// checkApply applies objects to a file in all forms that a file can have: with either line break,
// and with or without a line break at the end.
func checkApply(t *testing.T, before, desired, want string) {
	t.Helper()
	for _, form := range []struct {
		name string
		of   func(string) string
	}{
		{"as it is", func(s string) string { return s }},
		{"with CRLF", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
	} {
		t.Run(form.name, func(t *testing.T) {
			got, err := document.Apply([]byte(form.of(before)), objects(t, desired), options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(form.of(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := document.Apply(got, objects(t, desired), options)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("the second time (%v):\n%s", err, cmp.Diff(string(got), string(again)))
			}
		})
	}
}

// options remove Machine documents that are not desired.
var options = document.Options{Namespace: "default", Remove: func(id document.ID) bool { return id.Kind == "Machine" }}

func TestApplyKeepsTheEndOfAFile(t *testing.T) {
	const file = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: old # why"
	for _, one := range []struct{ name, desired, want string }{
		{"a replaced value", `{k: new}`, strings.Replace(file, "old", "new", 1)},
		{"an added key", `{k: old, l: x}`, file + "\n  l: x"},
		{"nothing", `{k: old}`, file},
	} {
		t.Run(one.name, func(t *testing.T) {
			desired := objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: "+one.desired+"}")
			got, err := document.Apply([]byte(file), desired, options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyRejects(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, one := range []struct{ name, file, desired, want string }{
		{"a file that is too large", strings.Repeat("#", document.MaxSize+1), object, "the maximum is"},
		{"a file with too many documents", strings.Repeat("---\n", document.MaxDocuments), object, "the maximum is 5000"},
		{"invalid YAML", "a: [", object, "document 1"},
		{"invalid YAML in a later document", "a: b\n---\n# c\nd: [\n", object, "document 2: yaml: line 4"},
		{"aliases that grow", "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + grow(), object, "values"},
		{"directives", "%YAML 1.1\n---\na: b\n", object, "directives"},
		{"end markers", "a: b\n...\n", object, "directives"},
		{"content beside a separator", "--- {a: b}\n", object, "line of a separator"},
		{"documents without a separator", "{a: b}\n{c: d}\n", object, ""},
		{"the same object twice", object + "---\n" + object, object, `the file has "ConfigMap/a" twice`},
		{"a key that is set twice", "a: 1\n---\nb: {yes: 1, 'true': 2}\n", object, "document 2: line 3: the key is set twice"},
		{"an object in a List", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(object, "\n", "\n  "), object, "in a List"},
		{"a desired object without a name", "", "kind: ConfigMap", "has no kind or no name"},
		{"a desired object that is given twice", "", object + "\n---\n" + object, "desired twice"},
	} {
		t.Run(one.name, func(t *testing.T) {
			got, err := document.Apply([]byte(one.file), objects(t, one.desired), options)
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %q, %v, want error %q", got, err, one.want)
			}
		})
	}
}

// grow returns lists that each repeat the list before ten times.
func grow() string {
	var out strings.Builder
	for level := range 7 {
		name, before := string(rune('b'+level)), string(rune('a'+level))
		out.WriteString(name + ": &" + name + " [" + strings.Repeat("*"+before+",", 10) + "]\n")
	}
	return out.String()
}

func TestApplyMatchesNamespaces(t *testing.T) {
	const named = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  namespace: team\nx: 1\n"
	unnamed := strings.Replace(named, "  namespace: team\n", "", 1)
	for _, one := range []struct{ name, file, desired, namespace, want string }{
		{"without a default, they are different objects", unnamed, named, "", unnamed + "---\n" + named},
		{"another default doesn't match", unnamed, named, "other", unnamed + "---\n" + named},
		{"the default matches and is not added", unnamed, strings.Replace(named, "1", "2", 1), "team", strings.Replace(unnamed, "1", "2", 1)},
		{"the default matches and is not removed", named, strings.Replace(unnamed, "1", "2", 1), "team", strings.Replace(named, "1", "2", 1)},
		{"another version is the same object", strings.Replace(named, "v1", "apps/v1", 1), strings.Replace(named, "v1", "apps/v2", 1), "", strings.Replace(named, "v1", "apps/v2", 1)},
		{"another group is another object", strings.Replace(named, "v1", "apps/v1", 1), named, "", strings.Replace(named, "v1", "apps/v1", 1) + "---\n" + named},
	} {
		t.Run(one.name, func(t *testing.T) {
			got, err := document.Apply([]byte(one.file), objects(t, one.desired), document.Options{Namespace: one.namespace})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyKeepsAnUnchangedSpec(t *testing.T) {
	for _, name := range []string{"docker", "packet"} {
		file, err := os.ReadFile("../spec/testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		got, err := document.Apply(file, objects(t, string(file)), document.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(file), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
