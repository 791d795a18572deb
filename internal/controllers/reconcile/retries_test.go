package reconcile

import (
	"testing"
	"time"
)

func TestRetriesNeverTakeLongerThanTheirLimit(t *testing.T) {
	limiter := retries()
	var last time.Duration
	for range 30 {
		last = limiter.When(request(0))
		if last > lastRetry {
			t.Fatalf("retried after %s, want at most %s", last, lastRetry)
		}
	}
	if last != lastRetry {
		t.Errorf("retried after %s, want %s after many failures", last, lastRetry)
	}
	if got := limiter.When(request(1)); got != firstRetry {
		t.Errorf("another object is retried after %s, want %s", got, firstRetry)
	}
}

func TestRetriesOfManyObjectsShareARate(t *testing.T) {
	limiter := retries()
	for range retryBurst {
		limiter.When(request(0))
	}
	if got := limiter.When(request(1)); got <= firstRetry {
		t.Errorf("retried after %s, want it to wait for the others", got)
	}
}
