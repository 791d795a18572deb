package spec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// base returns a valid file for the tables to change.
func base(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// table reads the cases of a test.
func table[T any](t testing.TB, name string) []T {
	t.Helper()
	var cases []T
	if err := yaml.UnmarshalStrict(base(t, name), &cases); err != nil {
		t.Fatalf("reading table %q: %v", name, err)
	}
	if len(cases) == 0 {
		t.Fatalf("table %q is empty", name)
	}
	return cases
}

// changed applies merge patches to the objects of a file. Keys are kinds, or kinds and names if
// there are several; "null" removes an object.
func changed(t testing.TB, file []byte, patches map[string]any) []byte {
	t.Helper()
	var out []string
	used := map[string]bool{}
	for text := range bytes.SplitSeq(file, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		kind, _ := object["kind"].(string)
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		keep := true
		for _, id := range []string{kind, kind + "/" + name} {
			if patch, ok := patches[id]; ok {
				used[id] = true
				keep = patch != nil
				text = []byte(asYAML(t, merge(object, patch)))
			}
		}
		if keep {
			out = append(out, string(text))
		}
	}
	for id := range patches {
		if !used[id] {
			t.Fatalf("the file has no %s to change", id)
		}
	}
	return []byte(strings.Join(out, "\n---\n"))
}

// merge applies a merge patch (RFC 7396).
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
			continue
		}
		object[key] = merge(object[key], value)
	}
	return object
}

func asYAML(t testing.TB, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// lines returns the violations as users see them.
func lines(problems spec.Violations) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// complete checks that every violation has a problem and a remedy on one line.
func complete(t testing.TB, problems spec.Violations) {
	t.Helper()
	for _, p := range problems {
		if p.Problem == "" || p.Remedy == "" || strings.ContainsAny(p.String(), "\n\x00\x1b") {
			t.Errorf("violation is not complete, or more than a line: %+v", p)
		}
	}
}

func config(t testing.TB, data []byte) *spec.Config {
	t.Helper()
	c, err := spec.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	spec.Default(c)
	return c
}

// cluster returns the Cluster of a valid file after successive changes.
func cluster(t testing.TB, name string, patches ...map[string]any) *anywherev1.Cluster {
	t.Helper()
	data := base(t, name)
	for _, patch := range patches {
		data = changed(t, data, map[string]any{"Cluster": copied(t, patch)})
	}
	c, err := spec.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return c.Cluster
}

// copied returns a deep copy.
func copied(t testing.TB, value map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(asYAML(t, value)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
