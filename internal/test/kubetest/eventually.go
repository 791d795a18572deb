package kubetest

import (
	"testing"
	"time"
)

// Tests check a condition soon again at first, and then less and less often: with many of them, a
// constant interval would keep the API server busier than what they wait for.
const (
	firstInterval = 20 * time.Millisecond
	lastInterval  = 250 * time.Millisecond
)

// Await waits until a check succeeds and returns how long that took. A test that waits longer than
// patience fails with the last error.
func Await(t testing.TB, patience time.Duration, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for interval := firstInterval; ; interval = min(interval*3/2, lastInterval) {
		err := check()
		took := time.Since(began)
		if err == nil {
			return took
		}
		if took > patience {
			t.Fatalf("after %s: %v", patience, err)
		}
		select {
		case <-time.After(interval):
		case <-t.Context().Done():
			t.Fatalf("interrupted after %s: %v", took, err)
		}
	}
}

// Eventually waits until a condition holds. A test that waits longer than Patience fails with a
// description of what it found instead.
func Eventually(t testing.TB, what string, holds func() bool, describe func() string) {
	t.Helper()
	Await(t, Patience, func() error {
		if holds() {
			return nil
		}
		return waiting{what, describe}
	})
}

// waiting is the state of a condition that doesn't hold, described only if somebody reads it.
type waiting struct {
	what     string
	describe func() string
}

func (w waiting) Error() string { return "waiting until " + w.what + ": " + w.describe() }
