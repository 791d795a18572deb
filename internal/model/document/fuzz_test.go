package document_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/drover-dev/drover/internal/model/document"
)

// FuzzApply changes random fields of some documents of a file. The result must have the desired
// objects, and the other documents byte for byte.
func FuzzApply(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, file []byte, seed uint64) {
		before, err := document.Objects(file)
		if err != nil {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		var desired []map[string]any
		for _, object := range before {
			if random.IntN(3) > 0 {
				desired = append(desired, mutated(random, object))
			}
		}
		got, err := document.Apply(file, desired, document.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "desired content") {
				t.Fatalf("%v\nfile:\n%s\ndesired: %v", err, file, desired)
			}
			return
		}
		checkContent(t, got, desired)
		checkOthers(t, file, got, desired)
		again, err := document.Apply(got, desired, document.Options{})
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("the second time (%v):\n%s", err, cmp.Diff(string(got), string(again)))
		}
	})
}

func addSeeds(f *testing.F) {
	f.Helper()
	for _, name := range []string{"docker", "packet"} {
		data, err := os.ReadFile("../spec/testdata/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint64(len(name)))
	}
	cases, _ := filepath.Glob("testdata/apply/*.txtar")
	for i, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			f.Add(part.Data, uint64(i))
			f.Add(bytes.ReplaceAll(part.Data, []byte("\n"), []byte("\r\n")), uint64(i+1))
		}
	}
	for i, text := range []string{
		"", "---", "\ufeffkind: A\nmetadata: {name: a}", "kind: A\nmetadata: {name: a}\n\tb: c", "kind: A\nmetadata: {name: a}\nx: |+\n  a\n\n\ny: 1",
		"kind: A\nmetadata: {name: a}\n? k\n: v\n", "kind: A\nmetadata: {name: a}\nx: !!str 1\ny: !t {a: b}\n", "kind: A\nmetadata: {name: a}\nx:\n-\n  - a\n- \n- b",
		"kind: A\nmetadata: {name: a}\n'é\u2028': \"\\x85\"\nb: 'x\n  # y'", "kind: A\nmetadata: {name: a}\na: 1\na: 2\nyes: no\n1: 2",
	} {
		f.Add([]byte(text), uint64(i))
	}
}

// mutated returns an object with the same identity and a few other fields.
func mutated(random *rand.Rand, object map[string]any) map[string]any {
	out := maps.Clone(object)
	for range random.IntN(4) {
		for _, key := range slices.Sorted(maps.Keys(out)) {
			if key == "kind" || key == "apiVersion" || key == "metadata" || random.IntN(2) == 0 {
				continue
			}
			if value := mutatedValue(random, out[key]); value != nil {
				out[key] = value
			} else {
				delete(out, key)
			}
		}
	}
	if random.IntN(4) == 0 {
		out["added"] = scalars[random.IntN(len(scalars))]
	}
	return out
}

// scalars are values that are hard to write.
var scalars = []any{
	"plain", "yes", "1.30", "", " ", "a: b", "# c", "a\nb\n", "\n", "a\n\n", " a\n  b", "é\u2028\u0085", "'\"\\", "- a", "{a}", "*a", "&a", "!a", "~", "null", "<<", "0o7", "1:30",
	true, 3, -1.5, 1e300,
	map[string]any{},
	[]any{},
	map[string]any{"name": "x", "k": []any{1, "b"}},
	[]any{"a", map[string]any{"name": "z", "a": 1}},
	nil,
}

func mutatedValue(random *rand.Rand, value any) any {
	if random.IntN(4) == 0 {
		return scalars[random.IntN(len(scalars))]
	}
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			out[key] = value[key]
			if random.IntN(3) == 0 {
				out[key] = mutatedValue(random, value[key])
			}
		}
		return out
	case []any:
		return mutatedList(random, value)
	}
	return value
}

func mutatedList(random *rand.Rand, list []any) []any {
	out := []any{}
	for _, item := range list {
		switch random.IntN(6) {
		case 0: // The item is removed.
		case 1:
			out = append(out, mutatedValue(random, item))
		case 2:
			out = append(out, item, scalars[random.IntN(len(scalars))])
		default:
			out = append(out, item)
		}
	}
	return out
}

// checkContent checks that a file has the desired objects.
func checkContent(t *testing.T, file []byte, desired []map[string]any) {
	t.Helper()
	got, err := document.Objects(file)
	if err != nil {
		t.Fatalf("the result can't be read: %v\n%s", err, file)
	}
	for _, want := range desired {
		if !slices.ContainsFunc(got, func(object map[string]any) bool { return cmp.Equal(decoded(t, object), decoded(t, want)) }) {
			t.Errorf("%v is missing in:\n%s", want, file)
		}
	}
}

// decoded returns a value as JSON decodes it, without null fields.
func decoded(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return withoutNull(out)
}

func withoutNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for key := range value {
			value[key] = withoutNull(value[key])
		}
	case []any:
		for i := range value {
			value[i] = withoutNull(value[i])
		}
	}
	return value
}

// checkOthers checks that the documents that are not desired are in the result, byte for byte.
func checkOthers(t *testing.T, before, after []byte, desired []map[string]any) {
	t.Helper()
	rest := after
	for part := range bytes.SplitSeq(before, []byte("\n---\n")) {
		objects, err := document.Objects(part)
		if err != nil || len(objects) != 1 {
			continue
		}
		id := func(object map[string]any) []any { return []any{object["kind"], object["metadata"]} }
		if slices.ContainsFunc(desired, func(want map[string]any) bool { return cmp.Equal(id(want), id(objects[0])) }) {
			continue
		}
		i := bytes.Index(rest, part)
		if i < 0 {
			t.Fatalf("a document changed that was not desired:\n%s\nresult:\n%s", part, after)
		}
		rest = rest[i+len(part):]
	}
}
