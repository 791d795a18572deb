package template

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzRender searches for templates that panic, do not terminate, or exceed the size limit.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"plain", "{{ .Cluster.metadata.name }}", "{{ range until 3 }}{{ . }}{{ end }}", "{{ with .Variables }}{{ toYaml . }}{{ end }}",
		`{{ define "x" }}{{ . }}{{ end }}{{ template "x" (dict "a" 1) }}`, `{{ seq 0 2 8 }}{{ untilStep 9 1 -3 }}`, "{{ now }}{{ uuidv4 }}",
		`{{ $x := set .Cluster "a" 1 }}{{ unset $x "a" }}`, `{{ range $k, $v := .Cluster }}{{ break }}{{ else }}{{ end }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse("fuzz", text)
		if err != nil {
			return
		}
		d := example()
		out, err := parsed.Render(d)
		if len(out) > MaxOutput {
			t.Errorf("%d bytes", len(out))
		}
		if err == nil && !parsed.Volatile() {
			if again, err := parsed.Render(d); err != nil || again != out {
				t.Errorf("rendered %q, then %q, %v", out, again, err)
			}
		}
		if first, second := parsed.StableDigest(d), parsed.StableDigest(d); first != second {
			t.Error("got two digests for the same template, want one")
		}
	})
}

// FuzzMerge searches for documents that violate the contract: the last one wins, and merging is
// idempotent.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("a: 1"), []byte("a: {b: [1]}"))
	f.Add([]byte("a: {b: null}"), []byte("a: {b: {c: d}}"))
	f.Add([]byte("&x a: *x"), []byte("{}"))
	f.Fuzz(func(t *testing.T, below, above []byte) {
		merged, err := Merge(below, above)
		if err != nil {
			return
		}
		top, err := Merge(above)
		if err != nil {
			t.Fatalf("merged with another, but not alone: %v", err)
		}
		data, err := yaml.Marshal(merged)
		if err != nil {
			t.Fatalf("can't be written: %v", err)
		}
		if again, err := Merge(data, above); err != nil || !reflect.DeepEqual(again, merged) {
			t.Errorf("merging again gives %v, not %v: %v", again, merged, err)
		}
		for key, value := range top {
			if _, isMap := value.(map[string]any); !isMap && !reflect.DeepEqual(merged[key], value) {
				t.Errorf("%q is %v, want %v", key, merged[key], value)
			}
		}
	})
}
