package vip

import (
	"cmp"
	"slices"
	"time"
)

const (
	// patience is how many checks in a row the holder may fail before the address is moved.
	patience = 2
	// cooldown is how long the address stays where it was put, so that two machines that come and go don't pass it back and forth.
	cooldown = 10 * time.Second

	checkHealthy = 3 * time.Second
	checkFailing = time.Second
	checkAlone   = time.Minute
	checkLost    = 5 * time.Second // alone, and does not answer: it may just be coming up
)

// health is what checks of a machine have shown lately. At most one of the two counts is not zero.
type health struct{ successes, failures int }

func (h health) known() bool { return h.successes+h.failures > 0 }

func (h health) succeeded() health { return health{successes: h.successes + 1} }

func (h health) failed() health { return health{failures: h.failures + 1} }

// candidate is a control plane machine.
type candidate struct {
	machine, device string
	unknown         bool // nothing is known of the device yet, as after a move to another management plane
	active          bool // the device is up
	leaving         bool // the machine is on its way out
	health          health
	created         time.Time
}

func (c candidate) fit() bool { return c.active && !c.leaving && c.health.successes > 0 }

// situation is all that a decision depends on.
type situation struct {
	now        time.Time
	holder     string // device that has the address, or ""
	movedAt    time.Time
	candidates []candidate
}

// decision is what to do.
type decision struct {
	// check asks for the health of all candidates before anything is decided.
	check bool
	// to is the device that should get the address, "" if it stays where it is.
	to string
	// why is for people.
	why string
	// next is when to look again, zero if an event will tell.
	next time.Duration
}

// decide says where the address should be.
//
//	holder              another machine is healthy   no other is
//	healthy             stays                        stays
//	fails once          stays                        stays
//	fails again         moves, after the cooldown    stays
//	is being deleted    moves                        stays
//	gone, off or none   moves                        goes to the oldest that is up
//	not known           stays                        stays
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
		return s.leave(h, others, "the previous machine is being deleted")
	case h.health.failures >= patience && s.now.Sub(s.movedAt) >= cooldown:
		return s.leave(h, others, "the previous machine does not answer")
	default:
		return decision{next: pace(h, others)}
	}
}

// fill finds a first holder. Healthy ones are preferred, but while a control plane comes up nobody is healthy yet, and its first machine
// needs the address to become so.
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

// leave moves the address to a healthy machine, if there is one.
func (s situation) leave(h candidate, others []candidate, why string) decision {
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

// pace is how often to check a holder that keeps the address: a machine that is alone is checked for its condition only.
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
