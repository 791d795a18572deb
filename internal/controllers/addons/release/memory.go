package release

import (
	"crypto/sha256"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// knowledge is what was last seen of a release's objects. It is lost with the process and found again by looking.
type knowledge struct {
	// stamp is the record that this is about, and through the connection by which it was seen.
	stamp   string
	through *workload.Cluster

	health *tool.Health
	// checked is when, and stirred says that objects changed since.
	checked time.Time
	stirred bool

	drift *[]tool.Change
	// touched says that objects changed since drift was looked for, in more than their status.
	touched bool

	// resolveEvery is how often a version that may move is looked up.
	resolveEvery time.Duration
}

// expectation is what an operation left behind. Watches tell it a moment later, and until then it counts more than what they say.
type expectation struct {
	state tool.State
	until time.Time
}

// expectFor bounds how long a watch may lag.
const expectFor = 10 * time.Second

// imprint is a fingerprint and what it was made of.
type imprint struct {
	inputs              [sha256.Size]byte
	digest, fingerprint string
}

// memory holds knowledge by HelmReleaseProxy.
type memory struct {
	mu     sync.Mutex
	known  map[client.ObjectKey]*knowledge
	expect map[client.ObjectKey]expectation
	prints map[client.ObjectKey]imprint
}

// imprinted returns the last fingerprint that was made of these inputs.
func (m *memory) imprinted(key client.ObjectKey, inputs [sha256.Size]byte) (imprint, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.prints[key]
	return p, ok && p.inputs == inputs
}

// imprint remembers a fingerprint.
func (m *memory) imprint(key client.ObjectKey, p imprint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prints == nil {
		m.prints = map[client.ObjectKey]imprint{}
	}
	m.prints[key] = p
}

// left notes what an operation left behind.
func (m *memory) left(key client.ObjectKey, state tool.State, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.expect == nil {
		m.expect = map[client.ObjectKey]expectation{}
	}
	m.expect[key] = expectation{state: state, until: now.Add(expectFor)}
}

// expected is what is on the cluster, given what its watches say.
func (m *memory) expected(key client.ObjectKey, observed tool.State, now time.Time) tool.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.expect[key]
	if !ok {
		return observed
	}
	if observed == e.state || !now.Before(e.until) || observed.Revision > e.state.Revision {
		delete(m.expect, key)
		return observed
	}
	return e.state
}

// of returns what is known about a record; nothing if it is another one than before, or if the cluster was connected to anew.
func (m *memory) of(key client.ObjectKey, stamp string, through *workload.Cluster) knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.known[key]; k != nil && k.stamp == stamp && k.through == through {
		return *k
	}
	return knowledge{}
}

// update changes what is known.
func (m *memory) update(key client.ObjectKey, change func(*knowledge)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[client.ObjectKey]*knowledge{}
	}
	if m.known[key] == nil {
		m.known[key] = &knowledge{}
	}
	change(m.known[key])
}

// stir notes that objects of a release changed. It says whether anybody cares.
func (m *memory) stir(key client.ObjectKey, statusOnly bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.known[key]
	if k == nil || k.health == nil && k.drift == nil {
		return false
	}
	k.stirred = true
	k.touched = k.touched || !statusOnly
	return k.health != nil || !statusOnly
}

func (m *memory) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
	delete(m.expect, key)
	delete(m.prints, key)
}
