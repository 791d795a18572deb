package kubetest

import (
	"testing"
	"time"
)

// pollInterval is how often Eventually checks a condition.
const pollInterval = 20 * time.Millisecond

// Eventually waits until a condition holds. A test that waits longer than Patience fails with a
// description of what it found instead.
func Eventually(t testing.TB, what string, holds func() bool, describe func() string) {
	t.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	late := time.After(Patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-late:
			t.Fatalf("timed out after %s waiting until %s: %s", Patience, what, describe())
		}
	}
}
