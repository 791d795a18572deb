package endpoint

import "time"

const (
	// Duration is how long a Lease keeps others away that see no renewal of it. It is longer than
	// GiveUp by a second, because that is how late the kernel may be.
	Duration = GiveUp + time.Second
	// GiveUp is how long a machine keeps the address after the start of its last renewal that
	// succeeded. Others see that renewal later.
	GiveUp = 2500 * time.Millisecond
	// Period is the time between requests.
	Period = 500 * time.Millisecond

	// silence is how long nobody may answer a probe before the address counts as unused.
	silence = 100 * time.Millisecond
	// reluctance is how much longer a machine that is being drained leaves the Lease to others.
	reluctance = 5 * time.Second
)

// Lease is the content of the Lease.
type Lease struct {
	// Holder is the machine that holds it, or "".
	Holder string
	// Version changes with every write; "" means that the Lease does not exist.
	Version string
	// Duration is how long its holder may rely on it.
	Duration time.Duration
}

// Peers is what the nodes of the control plane say.
type Peers struct {
	// Others is how many other machines the control plane has; Able is how many of them could take
	// over.
	Others, Able int
	// Draining means that the node of this machine is cordoned.
	Draining bool
}

// State is what an agent knows, and its decisions. Times are readings of the machine's own clock
// that are never compared with those of others.
type State struct {
	name string
	// founder means that this machine initializes the cluster, so there is no Lease yet.
	founder bool
	// tried is when the founder first wrote a lease, if it doesn't know the outcome.
	tried time.Time
	// stopping means that the agent ends.
	stopping bool

	lease Lease
	// current means that the lease is the last one that the API server returned.
	current bool
	seen    bool
	changed time.Time // when the lease was first seen as it is
	renewed time.Time // when the last renewal that succeeded began; zero without one

	peers Peers
	// known means that the peers are known. alone is set with a renewal.
	known, alone bool

	quiet  time.Time // the first probe that nobody else answered, nor a later one
	probed time.Time // the last probe
}

// NewState returns the state of an agent that knows nothing yet.
func NewState(name string, founder bool) *State { return &State{name: name, founder: founder} }

// mayFound reports whether the machine can be the first one of the cluster.
func (s *State) mayFound() bool { return !s.founder && !s.stopping && !s.seen }

// Found makes this machine the one that initializes the cluster.
func (s *State) Found() { s.founder = true }

// Holds reports whether the machine may have the address.
func (s *State) Holds(now time.Time) bool {
	switch {
	case s.retires():
		return false
	case s.founder:
		return s.silent(now) && (s.tried.IsZero() || now.Before(s.tried.Add(GiveUp)))
	default:
		return !s.renewed.IsZero() && (s.alone || now.Before(s.renewed.Add(GiveUp)))
	}
}

// Grant is how long a machine may keep the address, unless it hears something new.
type Grant struct {
	// Began identifies the renewal that granted it.
	Began time.Time
	// Until is zero if nobody else can take the address.
	Until time.Time
}

// Grant returns what a machine that holds the address knows.
func (s *State) Grant() Grant {
	switch {
	case s.founder && !s.tried.IsZero():
		return Grant{Began: s.tried, Until: s.tried.Add(GiveUp)}
	case s.founder, s.alone:
		return Grant{Began: s.renewed}
	default:
		return Grant{Began: s.renewed, Until: s.renewed.Add(GiveUp)}
	}
}

// retires reports whether the machine hands the address over.
func (s *State) retires() bool {
	return s.stopping || s.known && s.peers.Draining && s.peers.Able > 0
}

// silent reports whether nobody else has answered for the address since they could.
func (s *State) silent(now time.Time) bool {
	return !s.quiet.IsZero() && now.Sub(s.quiet) >= silence
}

// unused is silent, and they could recently.
func (s *State) unused(now time.Time) bool {
	return s.silent(now) && now.Sub(s.probed) <= 2*Period
}

// Verb is a request.
type Verb string

// Requests.
const (
	Read Verb = "read"
	// Take writes the Lease with this machine as holder, Free without one. Both fail if the Lease
	// has changed since it was read.
	Take Verb = "take"
	Free Verb = "free"
)

// Next returns the next request.
//
//	holder        request
//	unknown       read
//	this machine  take, which renews it; free if the machine retires
//	nobody        take, if the address is unused
//	another       read, until it has not been renewed for its duration; then take
func (s *State) Next(now time.Time) Verb {
	switch {
	case !s.current:
		return Read
	case s.isHolder() && s.retires():
		return Free
	case s.isHolder() && (s.Holds(now) || s.unused(now)), s.mayTake(now):
		return Take
	default:
		return Read
	}
}

func (s *State) mayTake(now time.Time) bool {
	free := s.expiry()
	if s.stopping || s.isHolder() || !s.unused(now) {
		return false
	}
	if s.retires() {
		free = s.changed.Add(s.duration() + reluctance)
	}
	return !now.Before(free)
}

// expiry returns when the lease ends that another machine holds.
func (s *State) expiry() time.Time {
	if s.lease.Holder == "" {
		return s.changed
	}
	return s.changed.Add(s.duration())
}

func (s *State) duration() time.Duration { return max(Duration, s.lease.Duration) }

// Due returns when to send the next request after one that was sent at that time.
func (s *State) Due(last, now time.Time) time.Time {
	next := last.Add(Period)
	if !s.current || s.isHolder() {
		return next
	}
	switch free := s.expiry(); {
	case !now.Before(free) && now.Sub(free) < reluctance:
		return last.Add(silence)
	case free.After(last) && free.Before(next):
		return free
	default:
		return next
	}
}

// Observe records the Lease as it was read.
func (s *State) Observe(l Lease, now time.Time) {
	if !s.seen || l.Version != s.lease.Version {
		s.changed = now
	}
	s.lease, s.current, s.seen = l, true, true
	if l.Holder != s.name {
		s.renewed = time.Time{}
	}
	s.founder, s.tried = s.founder && l.Holder == "", time.Time{}
}

// Wrote records a write that succeeded, and when it began.
func (s *State) Wrote(l Lease, began, now time.Time) {
	s.Observe(l, now)
	if l.Holder == s.name {
		s.renewed, s.founder = began, false
		s.alone = s.known && s.peers.Others == 0
	}
}

// Asked records that a request was sent. Once the founder may have written the Lease, it has the
// address only as long as that lasts; once the Lease may be free, nothing is left of a renewal.
func (s *State) Asked(verb Verb, now time.Time) {
	if s.founder && verb == Take && s.tried.IsZero() {
		s.tried = now
	}
	if verb == Free {
		s.renewed, s.alone = time.Time{}, false
	}
}

// Failed records a request without a known outcome.
func (s *State) Failed() { s.current = false }

// Meet records what the nodes say. A machine that was alone isn't any more as soon as another
// joins.
func (s *State) Meet(p Peers) {
	s.peers, s.known = p, true
	s.alone = s.alone && p.Others == 0
}

// Probed records that a probe for the address was sent.
func (s *State) Probed(now time.Time) {
	if s.quiet.IsZero() {
		s.quiet = now
	}
	s.probed = now
}

// Heard records that another machine has the address.
func (s *State) Heard() {
	s.quiet, s.renewed, s.alone = time.Time{}, time.Time{}, false
}

// Stop makes the machine hand the address over for good.
func (s *State) Stop() { s.stopping = true }

func (s *State) isHolder() bool { return s.lease.Holder == s.name }

// Freed reports whether a stopping machine has nothing left to hand over.
func (s *State) Freed() bool { return s.current && !s.isHolder() }
