package workload

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// Limits of the circuit breaker. Each pause is twice as long as the previous one.
const (
	firstPause = 5 * time.Second
	maxPause   = time.Minute
	// tolerated is how many consecutive connection failures open the breaker. One timeout opens it
	// immediately.
	tolerated = 3
)

// UnreachableError is returned for a cluster that failed to respond recently.
type UnreachableError struct {
	Cluster client.ObjectKey
	Until   time.Time
	Cause   error
}

func (u *UnreachableError) Error() string {
	return fmt.Sprintf("cluster %q is unreachable, next attempt at %s: %v", u.Cluster, u.Until.UTC().Format(time.TimeOnly), u.Cause)
}

func (u *UnreachableError) Unwrap() error { return u.Cause }

// breaker is a circuit breaker that stops requests to an unreachable cluster.
//
//	closed ──a time-out, or three failures──▶ open ──pause is over──▶ trying ──answer──▶ closed
//	                                            ▲                        │
//	                                            └──── twice the pause ───┘
type breaker struct {
	cluster client.ObjectKey
	clock   clock.PassiveClock

	mu       sync.Mutex
	failures int
	pause    time.Duration
	until    time.Time
	// trying is when a caller was let through to probe the cluster.
	trying time.Time
	cause  error
}

func newBreaker(cluster client.ObjectKey, c clock.PassiveClock) *breaker {
	return &breaker{cluster: cluster, clock: c}
}

// allow reports whether a caller may proceed. After the pause it lets one caller through, and
// another if the first reports nothing for as long.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 {
		return nil
	}
	now := b.clock.Now()
	if now.Before(b.until) {
		return &UnreachableError{Cluster: b.cluster, Until: b.until, Cause: b.cause}
	}
	if !b.trying.IsZero() && now.Before(b.trying.Add(b.pause)) {
		return &UnreachableError{Cluster: b.cluster, Until: b.trying.Add(b.pause), Cause: b.cause}
	}
	b.trying = now
	return nil
}

func (b *breaker) state() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until, b.pause > 0
}

// answered records any response.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.pause, b.cause = 0, 0, nil
	b.until, b.trying = time.Time{}, time.Time{}
}

// failed records a missing response. Failures of requests from before the pause don't extend it.
func (b *breaker) failed(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.cause = cause
	if b.clock.Now().Before(b.until) || !errors.Is(cause, bounded.ErrTimeout) && b.failures < tolerated {
		return
	}
	b.pause = min(max(firstPause, 2*b.pause), maxPause)
	b.until, b.trying = b.clock.Now().Add(b.pause), time.Time{}
}
