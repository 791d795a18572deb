package reconcile_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/test/jumpclock"
)

func TestAgesDoNotDependOnTheClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	key := client.ObjectKey{Name: "a"}
	for name, tc := range map[string]struct {
		recorded, jump time.Duration // after the clock showed noon, and after the first sight
		of, known      time.Duration // an hour later
	}{
		"the clock goes on":                           {recorded: -time.Minute, of: 61 * time.Minute, known: time.Hour},
		"the clock is set forward":                    {recorded: -time.Minute, jump: year, of: 61 * time.Minute, known: time.Hour},
		"the clock is set back":                       {recorded: -time.Minute, jump: -year, of: 61 * time.Minute, known: time.Hour},
		"the clock was ahead":                         {recorded: year, of: time.Hour, known: time.Hour},
		"the clock was ahead and catches up":          {recorded: year, jump: year, of: time.Hour, known: time.Hour},
		"the clock was set forward before a restart":  {recorded: -year, of: year + time.Hour, known: time.Hour},
		"the clock of another machine is ahead a bit": {recorded: time.Second, of: time.Hour, known: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var ages reconcile.Ages
			noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			clock := jumpclock.New(noon)
			recorded := noon.Add(tc.recorded)
			if got := ages.Known(clock, key, recorded); got != 0 {
				t.Errorf("known for %s at first sight", got)
			}
			clock.Jump(tc.jump)
			clock.Pass(time.Hour)
			if of, known := ages.Of(clock, key, recorded), ages.Known(clock, key, recorded); of != tc.of || known != tc.known {
				t.Errorf("the age is %s, known for %s; want %s, %s", of, known, tc.of, tc.known)
			}
			if got := ages.Known(clock, key, recorded.Add(time.Second)); got != 0 {
				t.Errorf("another time is known for %s", got)
			}
		})
	}
}

func TestForgottenTimesAreNew(t *testing.T) {
	var ages reconcile.Ages
	clock := jumpclock.New(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	key, recorded := client.ObjectKey{Name: "a"}, clock.Now()
	ages.Known(clock, key, recorded)
	clock.Pass(time.Hour)
	if got := ages.Known(clock, key, recorded.Add(time.Millisecond)); got != time.Hour {
		t.Errorf("a time that was stored and read is known for %s", got)
	}
	ages.Forget(key)
	if got := ages.Known(clock, key, recorded); got != 0 {
		t.Errorf("a forgotten time is known for %s", got)
	}
}
