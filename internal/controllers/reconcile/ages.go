package reconcile

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/elapsed"
)

// Ages measures how old times are that were recorded in objects, one for each object. Once it has
// seen a time, setting the clock makes no difference: it counts what passes in this process. Use it
// for what must not happen too early, such as giving up; elapsed.Since suffices for a retry. The
// zero value has seen nothing.
type Ages struct{ seen Memory[sighting] }

// sighting is when this process first saw a recorded time, and how old it was then by the clock.
type sighting struct {
	recorded, at time.Time
	age          time.Duration
}

// Of returns how old a recorded time is, if the clock was right when this process first saw it. One
// that was in the future then counts from there.
func (a *Ages) Of(c clock.PassiveClock, key client.ObjectKey, recorded time.Time) time.Duration {
	s := a.see(c, key, recorded)
	return s.age + c.Since(s.at)
}

// Known returns for how long this process has known a recorded time, which is never too long. After
// a restart it begins at zero.
func (a *Ages) Known(c clock.PassiveClock, key client.ObjectKey, recorded time.Time) time.Duration {
	return c.Since(a.see(c, key, recorded).at)
}

// Forget makes the next time of an object a new one, even if it is the same.
func (a *Ages) Forget(key client.ObjectKey) { a.seen.Forget(key) }

// see returns the first sighting of a time. Objects store whole seconds.
func (a *Ages) see(c clock.PassiveClock, key client.ObjectKey, recorded time.Time) sighting {
	recorded = recorded.UTC().Truncate(time.Second)
	a.seen.Update(key, func(s *sighting) {
		if s.at.IsZero() || !s.recorded.Equal(recorded) {
			now := c.Now()
			*s = sighting{recorded: recorded, at: now}
			if !elapsed.Ahead(recorded, now) {
				s.age = elapsed.Since(recorded, now)
			}
		}
	})
	return a.seen.Get(key)
}
