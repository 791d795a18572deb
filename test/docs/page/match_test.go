package page

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		want, got string
		matches   bool
	}{
		"the same":                      {"a\nb", "a\nb\n", true},
		"other blanks":                  {"NAME AGE\n\none  5m", "NAME   AGE\none    7s\n", true},
		"another duration":              {"✓ Starting etcd 0.4s", " ✓ Starting etcd      1m2.5s\n", true},
		"another digest":                {"sha256:2f2bc6d4c421d563858090b7", "sha256:51ab7c90e2f4d31851ab7c90\n", true},
		"another ID":                    {"Project c26b0917-d146-4d20-85f7-a7616ddedc42", "Project 5e9f7c73-7849-4bb4-8362-f4a5c24e586c", true},
		"another address":               {"API http://127.0.0.1:33953/metal", "API http://127.0.0.1:37735/metal", true},
		"another time":                  {"2026-05-01 12:00:00 Created", "2027-01-02 03:04:05 Created", true},
		"another size":                  {"sent 3.6 KiB", "sent 12 B", true},
		"an ellipsis in a line":         {"node one-… Ready", "node one-x2x7k Ready", true},
		"an ellipsis for lines":         {"a\n…\nd", "a\nb\nc\nd", true},
		"an ellipsis for no lines":      {"a\n…\nd", "a\nd", true},
		"an ellipsis at the end":        {"a\n…", "a\nb", true},
		"an ellipsis at the beginning":  {"…\nb", "a\nb", true},
		"another word":                  {"a", "b", false},
		"another version":               {"v1.36.3", "v1.36.4", false},
		"another number":                {"2 machines", "3 machines", false},
		"a missing line":                {"a\nb", "a", false},
		"an additional line":            {"a", "a\nb", false},
		"a line in another place":       {"a\nb", "b\na", false},
		"a line before what is shown":   {"b", "a\nb", false},
		"only a part of a line":         {"a", "a b", false},
		"lines missing after ellipsis":  {"a\n…\nd", "a\nb", false},
		"lines after a line after them": {"…\nb", "a\nb\nc", false},
		"a pattern is no pattern":       {"a.c", "abc", false},
		"output where none is expected": {"", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Match(strings.Split(c.want, "\n"), c.got); (err == nil) != c.matches {
				t.Errorf("got %v, want a match: %t", err, c.matches)
			}
		})
	}
}
