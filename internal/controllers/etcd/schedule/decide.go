package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// shortest is the shortest interval of a schedule.
	shortest = 5 * time.Minute
	// firstRetry is when a snapshot is tried again, twice as long after each failure, and lastRetry
	// the longest that becomes.
	firstRetry = 2 * time.Minute
	lastRetry  = time.Hour
)

// parse returns a schedule of a crontab. Zones are not supported: times are UTC.
func parse(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") {
		return nil, fmt.Errorf("schedule %q must not name a time zone: times are UTC", text)
	}
	s, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("schedule %q can't be read: %w; use five fields such as \"0 2 * * *\", or \"@every 6h\"", text, err)
	}
	first := s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if first.IsZero() {
		return nil, fmt.Errorf("schedule %q never comes", text)
	}
	for range 100 {
		next := s.Next(first)
		if next.Sub(first) < shortest {
			return nil, fmt.Errorf("schedule %q comes more often than every %s", text, shortest)
		}
		first = next
	}
	return s, nil
}

// history is what was done about a schedule.
type history struct {
	// created is when the schedule was created, attempt when a snapshot was last begun, and saved when
	// the last one that was saved was begun.
	created, attempt, saved time.Time
	// failures is how many attempts have failed since the last snapshot.
	failures int
}

// decide returns when the next snapshot is due, which may be in the past: what was missed becomes
// one snapshot.
func decide(s cron.Schedule, h history) time.Time {
	if h.attempt.IsZero() {
		return s.Next(h.created.UTC())
	}
	due := s.Next(h.attempt.UTC())
	if h.attempt.Equal(h.saved) {
		return due
	}
	// Without a failure, it was interrupted by the end of a manager.
	retry := h.attempt.Add(min(firstRetry<<min(max(h.failures-1, 0), 10), lastRetry))
	if retry.Before(due) {
		return retry
	}
	return due
}
