package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergePrefersLaterDocuments(t *testing.T) {
	for _, tc := range []struct {
		name string
		docs []string
		want map[string]any
	}{
		{"nothing", nil, map[string]any{}},
		{"empty documents", []string{"", "# only words\n", "null", "{}"}, map[string]any{}},
		{"maps deeply", []string{"a: {b: 1, c: 2}", "a: {c: 3, d: 4}"}, map[string]any{"a": map[string]any{"b": 1.0, "c": 3.0, "d": 4.0}}},
		{"lists as a whole", []string{"a: [1, 2]", "a: [3]"}, map[string]any{"a": []any{3.0}}},
		{"a null takes away", []string{"a: {b: 1}\nc: 2", "a: null"}, map[string]any{"a": nil, "c": 2.0}},
		{"a map over a null", []string{"a: null", "a: {b: 1}"}, map[string]any{"a": map[string]any{"b": 1.0}}},
		{"a map over a scalar", []string{"a: 1", "a: {b: 1}"}, map[string]any{"a": map[string]any{"b": 1.0}}},
		{"three in order", []string{"a: 1", "a: 2", "a: 3"}, map[string]any{"a": 3.0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var docs [][]byte
			for _, d := range tc.docs {
				docs = append(docs, []byte(d))
			}
			got, err := Merge(docs...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeRejectsNonMapsWithoutQuotingValues(t *testing.T) {
	for _, doc := range []string{"- canary-7", "canary-7", "a: {canary-7", "\tcanary-7: x"} {
		if _, err := Merge([]byte("a: 1"), []byte(doc)); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "document 2 of 2") {
			t.Errorf("%q: error is %v", doc, err)
		}
	}
}

func TestJoinKeepsASingleDocumentUnchanged(t *testing.T) {
	text := "b: 1 # words\n\na:   {c: 0x10}\n"
	if got, err := Join(text); err != nil || got != text {
		t.Errorf("joined %q, %v", got, err)
	}
	if got, err := Join(text, "b: 50000000"); err != nil || got != "a:\n  c: 16\nb: 50000000\n" {
		t.Errorf("joined %q, %v", got, err)
	}
}
