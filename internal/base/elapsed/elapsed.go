// Package elapsed measures how long ago a time was recorded, in an object or a file, by a clock
// that may have been set since. It is for what may happen too early but must not wait for a clock
// to catch up, such as a retry. What must not happen too early, such as giving up, measures with
// reconcile.Ages instead. Start with Since.
package elapsed

import (
	"math"
	"time"
)

const (
	// Forever is longer ago than anything waits.
	Forever time.Duration = math.MaxInt64
	// skew is how far the clocks of two machines may differ.
	skew = time.Minute
)

// Ahead reports whether a time was recorded by a clock that was ahead.
func Ahead(recorded, now time.Time) bool { return recorded.Sub(now) > skew }

// Since returns how long ago a time was recorded. One that a clock recorded that was ahead counts
// as Forever: nobody knows, and waiting for it may take years.
func Since(recorded, now time.Time) time.Duration {
	if Ahead(recorded, now) {
		return Forever
	}
	return max(now.Sub(recorded), 0)
}

// Left returns how much of a duration is left since a time was recorded; it is not positive if the
// duration is over.
func Left(d time.Duration, recorded, now time.Time) time.Duration { return d - Since(recorded, now) }
