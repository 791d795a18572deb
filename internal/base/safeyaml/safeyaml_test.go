package safeyaml

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/test/yamltest"
)

func TestCheckRejectsWhatGrows(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	for name, text := range map[string]string{
		"a long value":         yamltest.Text(),
		"a long key":           "a: &a " + long + "\nb: [" + strings.Repeat("{*a : 1},", 2000) + "]",
		"equal keys":           "a: &a " + long + "\nb: {" + strings.Repeat("x: *a,", 2000) + "}",
		"null keys":            "a: &a " + long + "\nb: {" + strings.Repeat("~: *a,", 2000) + "}",
		"a binary value":       "a: &a !!binary " + strings.Repeat("eHh4", 10_000) + "\nb: [" + strings.Repeat("*a,", 2000) + "]",
		"nested lists":         "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + nested("[", "*%,", "]", 6),
		"merges":               "a: &a {x: " + long + "}\nb: [" + strings.Repeat("{<<: *a},", 2000) + "]",
		"itself":               "a: &a [*a]",
		"a list of lists":      "[" + strings.Repeat("[],", MaxValues) + "]",
		"dashes in a line":     strings.Repeat("- ", MaxValues+1),
		"keys in a line":       strings.Repeat("? ", MaxValues+1),
		"returns":              "a:\r" + strings.Repeat("-\r", MaxValues+1),
		"other line breaks":    "a:\n" + strings.Repeat("-\u2028", MaxValues+1),
		"aliases in UTF-16":    "\xff\xfe" + strings.Join(strings.Split(yamltest.Text(), ""), "\x00") + "\x00",
		"aliases in UTF-16 BE": "\xfe\xff\x00" + strings.Join(strings.Split(yamltest.Text(), ""), "\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			yamltest.Attack(t, func() error { return Check([]byte(text)) })
		})
	}
}

// nested returns lines that each refer to the line before ten times.
func nested(before, item, after string, levels int) string {
	var out strings.Builder
	for level := range levels {
		name, last := string(rune('b'+level)), string(rune('a'+level))
		out.WriteString(name + ": &" + name + " " + before + strings.Repeat(strings.ReplaceAll(item, "%", last), 10) + after + "\n")
	}
	return out.String()
}

func TestUnmarshalDecodesAliases(t *testing.T) {
	text := []byte("a: &a {x: 1, y: [yes, ~, 0777, 1.5, 2001-01-01, !!binary eHg=, '', 'null', \"~\"], 'null': '~'}\nb: *a\nc: {<<: *a, z: \"*a & b\"}\n1: &d true\n? *d\n: e\n")
	var got, want any
	if err := Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	a, _ := yaml.Marshal(got)
	b, _ := yaml.Marshal(want)
	if !bytes.Equal(a, b) {
		t.Errorf("got\n%swant\n%s", a, b)
	}
}

func TestCheckLeavesSyntaxErrorsToTheParser(t *testing.T) {
	for _, text := range []string{"a: [&x", "a: *unknown & b", "\t& *"} {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := Unmarshal([]byte(text), new(any)); err == nil || errors.Is(err, ErrLimits) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzToJSON checks that every text is decoded as sigs.k8s.io/yaml does, or is rejected, and that
// accepted texts don't grow.
func FuzzToJSON(f *testing.F) {
	for _, seed := range []string{
		"", "a: &a {x: 1}\nb: *a", "<<: &a {b: c}\nd: {<<: [*a, *a]}", "? *x\n: &x y", "- &a !!binary eHg=\n- *a", "{a:*b, c: &b d}", "a: &a\nb: *a", "&a *a", "- *a\n- &a b", "'&' : '*'",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ToJSON(text)
		want, wantErr := yaml.YAMLToJSON(text)
		if err == nil && (wantErr != nil || !bytes.Equal(got, want)) {
			t.Errorf("got %q, want %q (%v)", got, want, wantErr)
		}
		if err == nil && len(got) > 8*(len(text)+MaxGrowth) {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
		if err != nil && wantErr == nil && !errors.Is(err, ErrLimits) && !errors.Is(err, errUTF16) && !errors.Is(err, errKey) {
			t.Errorf("rejected: %v", err)
		}
	})
}
