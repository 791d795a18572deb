package vip

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/base/elapsed"
)

const (
	// patience is after how many failed checks in a row the address moves.
	patience = 2
	// cooldown is how long the address stays at least, so that two unstable machines don't pass it
	// back and forth.
	cooldown = 10 * time.Second

	checkHealthy = 3 * time.Second
	checkFailing = time.Second
	checkAlone   = time.Minute
	checkLost    = 5 * time.Second // the only machine does not answer: it may be booting
)

// health is the result of recent checks of a machine. At most one of the two counts is not zero.
type health struct{ successes, failures int }

func (h health) known() bool { return h.successes+h.failures > 0 }

func (h health) succeeded() health { return health{successes: h.successes + 1} }

func (h health) failed() health { return health{failures: h.failures + 1} }

// candidate is a control plane machine.
type candidate struct {
	machine, device string
	unknown         bool // the state of the device is unknown, as after a move to another management plane
	active          bool // the device is active
	leaving         bool // the machine is being deleted
	health          health
	created         time.Time
}

func (c candidate) fit() bool { return c.active && !c.leaving && c.health.successes > 0 }

// situation is the input of a decision.
type situation struct {
	now        time.Time
	holder     string // the device that holds the address, or ""
	movedAt    time.Time
	candidates []candidate
}

// decision is what to do with the address.
type decision struct {
	// check means that the decision requires the health of all candidates.
	check bool
	// to is the device to move the address to; "" means that it stays.
	to string
	// why is for an event.
	why string
	// next is when to check again; zero if an event will trigger it.
	next time.Duration
}

// decide returns where the address should be.
//
//	holder              another machine is healthy   no other is
//	healthy             stays                        stays
//	fails once          stays                        stays
//	fails again         moves, after the cooldown    stays
//	is being deleted    moves                        stays
//	lost, off or none   moves                        goes to the oldest active one
//	unknown             stays                        stays
func decide(s situation) decision {
	holder := slices.IndexFunc(s.candidates, func(c candidate) bool { return c.device == s.holder && c.device != "" })
	switch {
	case holder < 0:
		return s.fill()
	case s.candidates[holder].unknown:
		return decision{}
	case !s.candidates[holder].active:
		return s.fill()
	}
	h := s.candidates[holder]
	others := slices.Delete(slices.Clone(s.candidates), holder, holder+1)
	switch {
	case h.leaving:
		return s.moveAway(h, others, "the previous machine is being deleted")
	case h.health.failures >= patience && elapsed.Since(s.movedAt, s.now) >= cooldown:
		return s.moveAway(h, others, "the previous machine does not answer")
	default:
		return decision{next: pace(h, others)}
	}
}

// fill chooses a first holder. It prefers healthy machines, but none is healthy while a control
// plane starts, and its first machine needs the address to become healthy.
func (s situation) fill() decision {
	up := slices.DeleteFunc(slices.Clone(s.candidates), func(c candidate) bool { return !c.active })
	if len(up) == 0 {
		return decision{}
	}
	if len(up) > 1 && unchecked(up) {
		return decision{check: true}
	}
	slices.SortStableFunc(up, func(a, b candidate) int {
		return cmp.Or(first(a.fit(), b.fit()), first(!a.leaving, !b.leaving), a.created.Compare(b.created), cmp.Compare(a.machine+a.device, b.machine+b.device))
	})
	return decision{to: up[0].device, why: "no machine held the address", next: checkFailing}
}

// moveAway moves the address to another healthy machine, if there is one.
func (s situation) moveAway(h candidate, others []candidate, why string) decision {
	able := slices.DeleteFunc(slices.Clone(others), func(c candidate) bool { return !c.active || c.leaving })
	if len(able) == 0 {
		return decision{next: pace(h, able)}
	}
	if unchecked(able) {
		return decision{check: true}
	}
	slices.SortStableFunc(able, func(a, b candidate) int {
		return cmp.Or(first(a.fit(), b.fit()), a.created.Compare(b.created), cmp.Compare(a.machine+a.device, b.machine+b.device))
	})
	if !able[0].fit() {
		return decision{next: checkFailing}
	}
	return decision{to: able[0].device, why: why, next: checkFailing}
}

// pace is how often to check a holder that keeps the address. If there is no other machine, the
// result only matters for the condition.
func pace(h candidate, others []candidate) time.Duration {
	switch {
	case !slices.ContainsFunc(others, func(c candidate) bool { return c.active && !c.leaving }):
		if h.health.failures > 0 {
			return checkLost
		}
		return checkAlone
	case h.health.failures > 0:
		return checkFailing
	default:
		return checkHealthy
	}
}

func unchecked(all []candidate) bool {
	return slices.ContainsFunc(all, func(c candidate) bool { return !c.health.known() })
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
