package elapsed_test

import (
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/elapsed"
)

func TestClocksThatWereAheadCauseNoWait(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const year = 365 * 24 * time.Hour
	for _, tc := range []struct {
		name     string
		recorded time.Time
		ahead    bool
		since    time.Duration
		left     time.Duration // of an hour
	}{
		{"just now", now, false, 0, time.Hour},
		{"a minute ago", now.Add(-time.Minute), false, time.Minute, 59 * time.Minute},
		{"a year ago", now.Add(-year), false, year, time.Hour - year},
		{"on a machine with another clock", now.Add(time.Minute), false, 0, time.Hour},
		{"by a clock that was ahead by minutes", now.Add(time.Minute + time.Second), true, elapsed.Forever, time.Hour - elapsed.Forever},
		{"by a clock that was ahead by a year", now.Add(year), true, elapsed.Forever, time.Hour - elapsed.Forever},
		{"never", time.Time{}, false, elapsed.Forever, time.Hour - elapsed.Forever},
	} {
		if got := elapsed.Ahead(tc.recorded, now); got != tc.ahead {
			t.Errorf("recorded %s: ahead is %t", tc.name, got)
		}
		if got := elapsed.Since(tc.recorded, now); got != tc.since {
			t.Errorf("recorded %s: got %s, want %s", tc.name, got, tc.since)
		}
		if got := elapsed.Left(time.Hour, tc.recorded, now); got != tc.left {
			t.Errorf("recorded %s: %s left, want %s", tc.name, got, tc.left)
		}
	}
}
