package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncateTo(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		limit   int
		want    string
	}{
		"a short message is kept":               {"short", 10, "short"},
		"a message of the limit is kept":        {"exactly ten", 11, "exactly ten"},
		"a longer one is cut and marked":        {"exactly eleven", 11, "exactly …"},
		"a character is never split":            {"aaaaéé", 8, "aaaaéé"},
		"the cut moves before a character":      {"aaaaééé", 8, "aaaa…"},
		"bytes that aren't UTF-8 are marked":    {"a\xffb", 10, "a\uFFFDb"},
		"a limit below the mark leaves no text": {"abcdef", 2, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TruncateTo(tc.message, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add(strings.Repeat("é", MaxMessage))
	f.Add("\xff\xfe" + strings.Repeat("a", MaxMessage))
	f.Fuzz(func(t *testing.T, message string) {
		got := Truncate(message)
		if len(got) > MaxMessage || !utf8.ValidString(got) {
			t.Errorf("got %d bytes, valid: %t", len(got), utf8.ValidString(got))
		}
	})
}

func TestFirstN(t *testing.T) {
	for want, items := range map[string][]string{
		"":                nil,
		"a":               {"a"},
		"a, b":            {"a", "b"},
		"a, b and 1 more": {"a", "b", "c"},
		"a, b and 3 more": {"a", "b", "c", "d", "e"},
	} {
		if got := FirstN(items, 2); got != want {
			t.Errorf("FirstN(%v) is %q, want %q", items, got, want)
		}
	}
}

func TestClauses(t *testing.T) {
	for want, clauses := range map[string][]string{
		"":                          nil,
		"a: x, y":                   {"a: x, y"},
		"a: x, y; b: z":             {"a: x, y", "b: z"},
		"a: x, y; b: z; and 1 more": {"a: x, y", "b: z", "c"},
	} {
		if got := Clauses(clauses, 2); got != want {
			t.Errorf("Clauses(%v) is %q, want %q", clauses, got, want)
		}
	}
}
