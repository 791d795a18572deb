package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStringsAcceptEveryClientEncoding(t *testing.T) {
	for body, want := range map[string]Strings{
		`null`:        nil,
		`"da"`:        {"da"},
		`["da","ny"]`: {"da", "ny"},
		`"da, ny,"`:   {"da", "ny"},
		`["", " da"]`: {"da"},
		`""`:          nil,
	} {
		var got Strings
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	var got Strings
	if err := json.Unmarshal([]byte(`{"a":1}`), &got); err == nil {
		t.Errorf("an object became %q", got)
	}
}

func TestNumbersMayBeStrings(t *testing.T) {
	for body, want := range map[string]Number{`1.5`: 1.5, `"1.5"`: 1.5, `""`: 0, `null`: 0} {
		got := Number(7)
		if err := json.Unmarshal([]byte(body), &got); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", body, got, err, want)
		}
	}
	var n Number
	if err := json.Unmarshal([]byte(`"many"`), &n); err == nil {
		t.Errorf("a word became %v", n)
	}
}

func TestTimesAreWholeSecondsInUTC(t *testing.T) {
	at := time.Date(2026, 7, 1, 14, 0, 0, 123456789, time.FixedZone("CEST", 2*60*60))
	got, err := json.Marshal(struct{ A, B *Time }{At(at), At(time.Time{})})
	if want := `{"A":"2026-07-01T12:00:00Z","B":null}`; err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
	var back Time
	if err := json.Unmarshal([]byte(`"2026-07-01T12:00:00Z"`), &back); err != nil || !back.Equal(at.Truncate(time.Second)) {
		t.Errorf("read back as %v: %v", back, err)
	}
}
