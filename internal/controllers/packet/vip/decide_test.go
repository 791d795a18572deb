package vip

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	long, just := now.Add(-time.Hour), now.Add(-time.Second)
	well, ill, worse, unknown := health{successes: 3}, health{failures: 1}, health{failures: patience}, health{}
	machine := func(device string, h health) candidate {
		return candidate{device: device, active: true, health: h, created: long.Add(time.Duration(device[0]) * time.Second)}
	}
	off := func(c candidate) candidate { c.active = false; return c }
	leaving := func(c candidate) candidate { c.leaving = true; return c }

	for _, tc := range []struct {
		name       string
		holder     string
		movedAt    time.Time
		candidates []candidate
		to         string
		check      bool
		next       time.Duration
	}{
		{name: "no machine: wait for one"},
		{name: "no machine is up: wait for one", candidates: []candidate{off(machine("a", unknown))}},
		{name: "the first machine gets it although it can't be healthy yet", candidates: []candidate{machine("a", unknown)}, to: "a", next: checkFailing},
		{name: "with several, their health is asked first", candidates: []candidate{machine("a", unknown), machine("b", well)}, check: true},
		{name: "the healthy one gets it, though younger", candidates: []candidate{machine("a", ill), machine("b", well)}, to: "b", next: checkFailing},
		{name: "of two healthy ones, the older gets it", candidates: []candidate{machine("b", well), machine("a", well)}, to: "a", next: checkFailing},
		{name: "if none is healthy, the oldest that stays gets it", candidates: []candidate{leaving(machine("a", ill)), machine("b", ill)}, to: "b", next: checkFailing},
		{name: "the holder is gone", holder: "x", candidates: []candidate{machine("b", well)}, to: "b", next: checkFailing},
		{name: "the holder is powered off", holder: "a", candidates: []candidate{off(machine("a", well)), machine("b", well)}, to: "b", next: checkFailing},

		{name: "a healthy holder keeps it", holder: "a", candidates: []candidate{machine("a", well), machine("b", well)}, next: checkHealthy},
		{name: "a healthy holder keeps it, though younger", holder: "b", candidates: []candidate{machine("a", well), machine("b", well)}, next: checkHealthy},
		{name: "a single holder is not watched closely", holder: "a", candidates: []candidate{machine("a", well)}, next: checkAlone},
		{name: "a single holder that fails keeps it", holder: "a", movedAt: long, candidates: []candidate{machine("a", worse)}, next: checkLost},
		{name: "one failure is not enough", holder: "a", movedAt: long, candidates: []candidate{machine("a", ill), machine("b", well)}, next: checkFailing},
		{name: "two failures: ask the others", holder: "a", movedAt: long, candidates: []candidate{machine("a", worse), machine("b", unknown)}, check: true},
		{name: "two failures and a healthy one: move", holder: "a", movedAt: long, candidates: []candidate{machine("a", worse), machine("b", well), machine("c", ill)}, to: "b", next: checkFailing},
		{name: "two failures and none healthy: stay, as moving does not help", holder: "a", movedAt: long, candidates: []candidate{machine("a", worse), machine("b", ill)}, next: checkFailing},
		{name: "two failures right after a move: stay for now", holder: "a", movedAt: just, candidates: []candidate{machine("a", worse), machine("b", well)}, next: checkFailing},
		{name: "two failures, moved in the future by a clock that was ahead: move", holder: "a", movedAt: now.AddDate(1, 0, 0), candidates: []candidate{machine("a", worse), machine("b", well)}, to: "b", next: checkFailing},
		{name: "two failures, moved a year ago: move", holder: "a", movedAt: now.AddDate(-1, 0, 0), candidates: []candidate{machine("a", worse), machine("b", well)}, to: "b", next: checkFailing},
		{name: "a machine that is being deleted is no target", holder: "a", movedAt: long, candidates: []candidate{machine("a", worse), leaving(machine("b", well))}, next: checkLost},

		{name: "a holder that is being deleted hands over", holder: "a", movedAt: just, candidates: []candidate{leaving(machine("a", well)), machine("b", well)}, to: "b", next: checkFailing},
		{name: "but asks first who can take it", holder: "a", candidates: []candidate{leaving(machine("a", well)), machine("b", unknown)}, check: true},
		{name: "keeps it as long as no other machine is healthy", holder: "a", candidates: []candidate{leaving(machine("a", well)), machine("b", ill)}, next: checkFailing},
		{name: "or is the last one", holder: "a", candidates: []candidate{leaving(machine("a", well))}, next: checkAlone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decide(situation{now: now, holder: tc.holder, movedAt: tc.movedAt, candidates: tc.candidates})
			if got.to != tc.to || got.check != tc.check || got.next != tc.next {
				t.Errorf("got %+v, want to %q, check %t, next %s", got, tc.to, tc.check, tc.next)
			}
		})
	}
}

// TestNoFlapping simulates two machines that are healthy in turns, as with a flaky network: the
// address must not follow each change.
func TestNoFlapping(t *testing.T) {
	now, moves, holder := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), 0, "a"
	movedAt := now.Add(-time.Hour)
	all := map[string]health{}
	for second := range 120 {
		for device, phase := range map[string]int{"a": 0, "b": 1} {
			if (second/2+phase)%2 == 0 {
				all[device] = all[device].succeeded()
			} else {
				all[device] = all[device].failed()
			}
		}
		d := decide(situation{now: now, holder: holder, movedAt: movedAt, candidates: []candidate{
			{device: "a", active: true, health: all["a"]}, {device: "b", active: true, health: all["b"]},
		}})
		if d.to != "" {
			holder, movedAt, moves = d.to, now, moves+1
		}
		now = now.Add(time.Second)
	}
	if moves > 12 {
		t.Errorf("moved %d times in two minutes", moves)
	}
}
