package endpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const tick = 20 * time.Millisecond

// model is a control plane whose machines, network and API servers fail. Time passes in ticks.
type model struct {
	t        *testing.T
	random   *rand.Rand
	now      time.Time
	version  int
	holder   string
	machines []*modelMachine
	story    []string
}

type modelMachine struct {
	*model

	name  string
	state *State
	skew  time.Duration
	// expiry is when the kernel removes the address, zero if it isn't there.
	expiry  time.Time
	granted Grant
	asked   time.Time
	call    *modelCall
	probed  time.Time

	draining           bool
	cut, stalled, hung time.Time // until when
}

// modelCall is a request under way.
type modelCall struct {
	verb    Verb
	began   time.Time
	version int       // the Lease that the caller knows
	arrive  time.Time // when the API server acts; zero if never
	answer  time.Time // when the outcome is known
	done    func(now time.Time)
}

func (m *modelMachine) clock() time.Time { return m.now.Add(m.skew) }

// step lets a machine act once, as Agent does.
func (m *modelMachine) step() {
	m.serve()
	if !m.expiry.IsZero() && !m.now.Before(m.expiry) {
		m.expiry = time.Time{}
	}
	if m.now.Before(m.hung) {
		return
	}
	now := m.clock()
	if m.call != nil && !m.now.Before(m.call.answer) {
		m.call.done(now)
		m.call = nil
	}
	if m.now.Sub(m.probed) >= silence {
		m.probed = m.now
		if m.answered() {
			m.state.Heard()
		}
		m.state.Probed(now)
	}
	m.state.Meet(m.peers())
	m.settle()
	if m.call == nil && !now.Before(m.state.Due(m.asked, now)) {
		m.asked = now
		verb := m.state.Next(now)
		m.state.Asked(verb, now)
		m.settle()
		m.send(verb)
	}
}

// settle makes the address follow the state, as Agent does.
func (m *modelMachine) settle() {
	now := m.clock()
	switch grant := m.state.Grant(); {
	case !m.state.Holds(now):
		m.expiry = time.Time{}
	case m.expiry.IsZero() || grant != m.granted || grant.Until.IsZero():
		// The kernel is up to a second late.
		if seconds := lifetime(grant, now); seconds > 0 {
			m.granted = grant
			m.expiry = m.now.Add(time.Duration(seconds)*time.Second + time.Duration(m.random.Int64N(int64(time.Second))))
		}
	}
}

func (m *modelMachine) peers() Peers {
	p := Peers{Draining: m.draining}
	for _, other := range m.machines {
		if other != m {
			p.Others++
			if !other.draining {
				p.Able++
			}
		}
	}
	return p
}

// answered reports whether another machine that can be reached has the address.
func (m *modelMachine) answered() bool {
	for _, other := range m.machines {
		if other != m && !other.expiry.IsZero() && !m.now.Before(other.cut) && !m.now.Before(m.cut) {
			return true
		}
	}
	return false
}

// send sends a request, which may be slow, get lost, or lose its response.
func (m *modelMachine) send(verb Verb) {
	delay := time.Duration(m.random.Int64N(int64(100 * time.Millisecond)))
	if m.random.IntN(20) == 0 {
		delay *= 12
	}
	c := &modelCall{verb: verb, began: m.clock(), arrive: m.now.Add(delay), answer: m.now.Add(2 * delay)}
	if known := m.state.lease.Version; known != "" {
		fmt.Sscan(known, &c.version)
	}
	c.done = func(time.Time) { m.state.Failed() }
	m.call = c
}

// serve lets the request under way reach etcd, unless the machine is isolated by then.
func (m *modelMachine) serve() {
	c := m.call
	if c == nil || c.arrive.IsZero() || m.now.Before(c.arrive) {
		return
	}
	c.arrive = time.Time{}
	if m.now.Before(m.cut) || m.now.Before(m.stalled) {
		c.answer = m.now.Add(time.Second)
		return
	}
	if c.verb != Read && m.version != c.version {
		return
	}
	switch c.verb {
	case Take:
		m.write(m.name)
	case Free:
		m.write("")
	}
	lease := Lease{Holder: m.holder, Version: fmt.Sprint(m.version)}
	if m.version == 0 {
		lease = Lease{}
	}
	if m.random.IntN(15) == 0 {
		return // The response gets lost.
	}
	c.done = func(now time.Time) {
		if c.verb == Read {
			m.state.Observe(lease, now)
		} else {
			m.state.Wrote(lease, c.began, now)
		}
	}
}

func (m *model) write(holder string) {
	if m.holder != holder {
		m.story = append(m.story, fmt.Sprintf("%6.2f s lease of %q", m.now.Sub(at(0)).Seconds(), holder))
	}
	m.version++
	m.holder = holder
}

// fail breaks something now and then.
func (m *model) fail() {
	if m.version == 0 || m.random.IntN(int(2*time.Second/tick)) != 0 {
		return
	}
	victim := m.machines[m.random.IntN(len(m.machines))]
	until := m.now.Add(time.Duration(m.random.Int64N(int64(8 * time.Second))))
	kind := "restarts"
	switch m.random.IntN(6) {
	case 0:
		victim.cut, kind = until, "is cut off"
	case 1:
		victim.stalled, kind = until, "stalls"
	case 2:
		victim.hung, kind = until, "hangs"
	case 3:
		// A client with a monotonic clock doesn't notice steps; a restart has another zero.
		victim.skew, victim.state, victim.call = time.Duration(m.random.Int64N(int64(time.Hour))), NewState(victim.name, false), nil
		victim.asked = time.Time{}
	case 4:
		victim.draining = !victim.draining
		kind = fmt.Sprint("draining: ", victim.draining)
	case 5:
		victim.cut, victim.hung, kind = until, until, "is cut off and hangs"
	}
	m.story = append(m.story, fmt.Sprintf("%6.2f s %s %s until %.2f s", m.now.Sub(at(0)).Seconds(), victim.name, kind, until.Sub(at(0)).Seconds()))
}

// holders returns who answers for the address on the network.
func (m *model) holders() (names []string) {
	for _, one := range m.machines {
		if !one.expiry.IsZero() && !m.now.Before(one.cut) {
			names = append(names, one.name)
		}
	}
	return names
}

// healthy reports whether a machine works and could have the address.
func (m *modelMachine) healthy() bool {
	return !m.now.Before(m.cut) && !m.now.Before(m.stalled) && !m.now.Before(m.hung)
}

// TestOneHolder runs control planes through thousands of failures. The address is never on two
// machines of the network, and never missing for long where a machine works.
func TestOneHolder(t *testing.T) {
	const horizon = 2 * time.Minute
	for seed := range uint64(200) {
		m := &model{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: at(0)}
		for i := range 2 + int(seed%2) {
			one := &modelMachine{model: m, name: string(rune('a' + i)), skew: time.Duration(i) * time.Hour}
			one.state = NewState(one.name, i == 0)
			m.machines = append(m.machines, one)
		}
		missing := m.now
		for ; m.now.Before(at(horizon.Seconds())); m.now = m.now.Add(tick) {
			m.fail()
			for _, i := range m.random.Perm(len(m.machines)) {
				if i == 0 || m.version > 0 { // Nobody can join before.
					m.machines[i].step()
				}
			}
			holders := m.holders()
			if len(holders) > 1 {
				t.Fatalf("seed %d: %.2f s: holders %v\n%s", seed, m.now.Sub(at(0)).Seconds(), holders, m.tail())
			}
			if len(holders) > 0 || !m.allHealthy() {
				missing = m.now
			}
			if m.now.Sub(missing) > 15*time.Second {
				t.Fatalf("seed %d: %.2f s: no holder since %.2f s\n%s", seed, m.now.Sub(at(0)).Seconds(), missing.Sub(at(0)).Seconds(), m.tail())
			}
		}
	}
}

func (m *model) allHealthy() bool {
	for _, one := range m.machines {
		if !one.healthy() {
			return false
		}
	}
	return true
}

func (m *model) tail() (out string) {
	for _, line := range m.story[max(0, len(m.story)-14):] {
		out += line + "\n"
	}
	return out
}
