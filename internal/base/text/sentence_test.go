package text

import "testing"

func TestSentenceStartsWithCapitalLetter(t *testing.T) {
	for in, want := range map[string]string{"": "", "reading x": "Reading x", "Ready": "Ready", `"x" failed`: `"x" failed`, "äußerst": "Äußerst", "\xff": "\xff"} {
		if got := Sentence(in); got != want {
			t.Errorf("Sentence(%q) is %q, want %q", in, got, want)
		}
	}
}
