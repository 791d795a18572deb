package artifact

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParseIndex(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       index
		fails      bool
	}{
		{
			name: "YAML, with more than is needed",
			text: "apiVersion: v1\ngenerated: 2026-01-01T00:00:00Z\nentries:\n  cni:\n  - name: cni\n    version: 1.0.0\n    description: |\n" +
				"      a\n      b\n    digest: " + sum + "\n    urls:\n    - cni-1.0.0.tgz\n    - https://example.com/cni.tgz\n",
			want: index{"cni": {{version: "1.0.0", digest: digestPrefix + sum, urls: []string{"cni-1.0.0.tgz", "https://example.com/cni.tgz"}}}},
		},
		{
			name: "JSON",
			text: `{"entries":{"a/b":[{"version":"2.0.0","digest":"sha256:` + strings.ToUpper(sum) + `","urls":["x.tgz"]}]}}`,
			want: index{"a/b": {{version: "2.0.0", digest: digestPrefix + sum, urls: []string{"x.tgz"}}}},
		},
		{
			name: "a version that YAML takes for a number",
			text: "entries:\n  a:\n  - version: 1.10\n    urls: [x]\n",
			want: index{"a": {{version: "1.10", urls: []string{"x"}}}},
		},
		{
			name: "entries that can't be used, and a digest of another kind",
			text: "entries:\n  a:\n  -\n  - version: 1.0.0\n  - urls: [x]\n  - version: 2.0.0\n    digest: md5:1234\n    urls: [y]\n",
			want: index{"a": {{version: "2.0.0", urls: []string{"y"}}}},
		},
		{name: "no entries", text: "entries: {}\n", want: index{}},
		{name: "something else", text: "<html>Sign in</html>", fails: true},
		{name: "nothing", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseIndex([]byte(c.text))
			if (err != nil) != c.fails || (err != nil && !errors.Is(err, ErrInvalid)) {
				t.Fatalf("got error %v, want an invalid index: %t", err, c.fails)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(entry{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Both ways to parse an index have the same result.
func TestParsePieces(t *testing.T) {
	const tidy = "apiVersion: v1\r\n# entries:\nentries:\n\n  # of the network\n  cni:\n  - version: 1.0.0\n    description: |\n      entries:\n" +
		"        csi:\n    urls:\n    - a\n  - version: 1.1.0\n    description: \"two\n      lines\"\n    urls: [b]\n  \"quoted/csi\":\n    - version: 2.0.0\n" +
		"      urls:\n        - c\n  none: []\n\ngenerated: 2026-01-01T00:00:00Z\nmore:\n  key: value\n"
	if n := len(cut([]byte(tidy))); n != 3 {
		t.Errorf("%d pieces", n)
	}
	want := index{
		"cni":        {{version: "1.0.0", urls: []string{"a"}}, {version: "1.1.0", urls: []string{"b"}}},
		"quoted/csi": {{version: "2.0.0", urls: []string{"c"}}},
	}
	for name, text := range map[string]string{
		"in pieces":             tidy,
		"as a whole, in braces": "{entries: {cni: [{version: 1.0.0, urls: [a]}, {version: 1.1.0, urls: [b]}], quoted/csi: [{version: 2.0.0, urls: [c]}]}}",
		"as a whole, because of an anchor": "entries:\n  none: &none []\n  csi: *none\n  cni:\n  - {version: 1.0.0, urls: [a]}\n" +
			"  - {version: 1.1.0, urls: [b]}\n  quoted/csi:\n  - {version: 2.0.0, urls: [c]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if whole := strings.Contains(name, "whole"); whole != (parsePieces([]byte(text)) == nil) {
				t.Errorf("parsed as a whole: %v", !whole)
			}
			got, err := parseIndex([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzParseIndex finds texts that crash the parser, and invalid entries that it accepts.
func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("entries:\n  a:\n  - version: 1.0.0\n    digest: " + sum + "\n    urls: [a.tgz]\n"))
	f.Add([]byte(`{"entries":{"a":[null,{"version":"1","urls":[""]}]}}`))
	f.Add([]byte("entries: &a\n  b: *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := parseIndex(text)
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Fatalf("got error %v, want none or %v", err, ErrInvalid)
		}
		for name, entries := range read {
			for _, e := range entries {
				if e.version == "" || len(e.urls) == 0 {
					t.Errorf("%q has %+v", name, e)
				}
			}
			if e, err := read.choose(name, ""); err == nil && e.version == "" {
				t.Errorf("chose nothing of %q", name)
			}
		}
	})
}

// TestLargeIndexesAreStreamed reads indexes that don't fit the limit for whole ones, and compares
// with the whole parser.
func TestLargeIndexesAreStreamed(t *testing.T) {
	var yamlText, jsonText strings.Builder
	yamlText.WriteString("apiVersion: v1\nentries:\n")
	jsonText.WriteString(`{"apiVersion": "v1", "generated": {"a": [1, {}]}, "entries": {`)
	want := index{}
	for n := range 40 {
		name := fmt.Sprintf("chart-%d", n)
		fmt.Fprintf(&yamlText, "  %s:\n", name)
		fmt.Fprintf(&jsonText, "%s%q: [null", strings.Repeat(",", min(n, 1)), name)
		for v := range 100 {
			version, url := fmt.Sprintf("1.%d.0", v), fmt.Sprintf("https://example.com/%s-%d.tgz", name, v)
			fmt.Fprintf(&yamlText, "  - annotations: {}\n    description: |-\n      - a\n\n      %s\n    version: %s\n    urls:\n    - %s\n", strings.Repeat("x", 300), version, url)
			fmt.Fprintf(&jsonText, `, {"description": %q, "version": %q, "urls": [%q]}`, strings.Repeat("x", 300), version, url)
			want[name] = append(want[name], entry{version: version, urls: []string{url}})
		}
		jsonText.WriteString("]")
	}
	yamlText.WriteString("  none: []\n  empty:\ngenerated: now\nother:\n  a:\n  - version: 1\n    urls: [x]\n")
	jsonText.WriteString(`}, "last": "one"}`)
	for name, text := range map[string]string{"YAML": yamlText.String(), "JSON": jsonText.String()} {
		if len(text) <= maxWhole {
			t.Fatalf("%s has only %d bytes", name, len(text))
		}
		got, err := readIndex(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%s: %s", name, diff[:min(len(diff), 1000)])
		}
	}
}

func TestVersionsOfAnIndexAreLimitedInSize(t *testing.T) {
	text := func(format string, size int) string {
		return fmt.Sprintf(format, strings.Repeat("x", size), strings.Repeat("x", maxItem/2))
	}
	for name, format := range map[string]string{
		"YAML": "entries:\n  a:\n  - version: 1.0.0\n    description: %s\n    urls: [a.tgz]\n  - version: 1.0.1\n    description: %s\n    urls: [a.tgz]\n",
		"JSON": `{"entries": {"a": [{"version": "1.0.0", "description": "%s", "urls": ["a.tgz"]}, {"version": "1.0.1", "description": "%s", "urls": ["a.tgz"]}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readIndex(strings.NewReader(text(format, maxItem-1<<10)))
			if err != nil || len(got["a"]) != 2 {
				t.Errorf("got %d versions and error %v of an index with a version just below the limit, want 2 versions", len(got["a"]), err)
			}
			_, err = readIndex(strings.NewReader(text(format, maxItem+1<<10)))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "more than 524288 bytes") {
				t.Errorf("got error %v of an index with a version above the limit, want one that names the limit", err)
			}
		})
	}
}

func TestNestingOfAJSONIndexIsLimited(t *testing.T) {
	text := `{"other": ` + strings.Repeat("[", maxWhole) + strings.Repeat("]", maxWhole) + `, "entries": {}}`
	if _, err := readIndex(strings.NewReader(text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("got error %v, want one about the nesting", err)
	}
}

// TestHostileIndexesTakeLittleMemory reads indexes that take many times their size if they are
// parsed as a whole.
func TestHostileIndexesTakeLittleMemory(t *testing.T) {
	const size = 8 << 20
	endless := func(head, more string) io.Reader {
		return io.LimitReader(io.MultiReader(strings.NewReader(head), &repeated{text: more}), size)
	}
	for name, from := range map[string]io.Reader{
		"a list in a version":  endless("entries:\n  a:\n  - version: 1.0.0\n    urls:\n", "    -\n"),
		"a list of nothing":    endless("entries:\n  a:\n", "  -\n"),
		"one line":             endless("entries:\n  a: [", "[],"),
		"another layout":       endless("a:\n", "-\n"),
		"names":                endless("entries:\n", "  a: []\n"),
		"a JSON list":          endless(`{"entries": {"a": [{"urls": [`, `"",`),
		"JSON that is ignored": endless(`{"a": [`, `[],`),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, _ = readIndex(from)
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 128<<20 {
				t.Errorf("reading %d MiB took %d MiB", size>>20, grown>>20)
			}
		})
	}
}

// repeated is an endless text.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}
