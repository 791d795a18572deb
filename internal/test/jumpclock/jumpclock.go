// Package jumpclock is a clock for tests that can be set while time passes, as that of a host. Like
// the clock of a process, it measures how long ago it returned a time regardless of that; times
// that were stored and read again have only what the clock showed. Start with New.
package jumpclock

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// zone prefixes the names of the time zones that carry how much time had passed.
const zone = "passed "

// Clock is a clock.PassiveClock.
type Clock struct {
	mu     sync.Mutex
	shows  time.Time
	passed time.Duration
}

// New returns a clock that shows a time.
func New(shows time.Time) *Clock { return &Clock{shows: shows.UTC()} }

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shows, c.passed = c.shows.Add(d), c.passed+d
}

// Jump sets the clock forward or back, while no time passes.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shows = c.shows.Add(d)
}

// Passed returns how much time has passed.
func (c *Clock) Passed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed
}

// Now returns what the clock shows. Its zone, which is as UTC, carries how much time has passed.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shows.In(time.FixedZone(zone+strconv.FormatInt(int64(c.passed), 10), 0))
}

// Steady returns a clock that Jump does not set. It is for code that keeps times in memory only:
// comparing them ignores jumps of a process's clock, but not of this one.
func (c *Clock) Steady() clock.PassiveClock { return steady{c, c.Now().Add(-c.Passed())} }

type steady struct {
	clock *Clock
	began time.Time
}

func (s steady) Now() time.Time { return s.began.Add(s.clock.Passed()) }

func (s steady) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// Since returns how much time has passed since Now returned t, or else how the clock differs.
func (c *Clock) Since(t time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _ := t.Zone()
	if passed, found := strings.CutPrefix(name, zone); found {
		then, _ := strconv.ParseInt(passed, 10, 64)
		return c.passed - time.Duration(then)
	}
	return c.shows.Sub(t)
}
