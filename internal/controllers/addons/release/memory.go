package release

import (
	"crypto/sha256"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// knowledge is what was last observed of the objects of a release. It is lost on a restart and
// gathered again.
type knowledge struct {
	// stamp identifies the record that was observed, and through the connection.
	stamp   string
	through *workload.Cluster

	health *tool.Health
	// checked is when health was checked, and changed reports that objects changed since.
	checked time.Time
	changed bool

	drift *[]tool.Change
	// specChanged reports that more than the status of objects changed since drift was checked.
	specChanged bool

	// resolveEvery is how often a floating version is resolved again.
	resolveEvery time.Duration
}

// expectation is the state that an operation left. It overrides watches until they have caught up.
type expectation struct {
	state tool.State
	until time.Time
}

// expectFor limits how long a watch may lag.
const expectFor = 10 * time.Second

// fingerprinted is a fingerprint and its inputs.
type fingerprinted struct {
	inputs              [sha256.Size]byte
	digest, fingerprint string
}

// memory holds knowledge by HelmReleaseProxy.
type memory struct {
	mu     sync.Mutex
	known  map[client.ObjectKey]*knowledge
	expect map[client.ObjectKey]expectation
	prints map[client.ObjectKey]fingerprinted
}

// fingerprintFor returns the last fingerprint if it was made from these inputs.
func (m *memory) fingerprintFor(key client.ObjectKey, inputs [sha256.Size]byte) (fingerprinted, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.prints[key]
	return p, ok && p.inputs == inputs
}

// setFingerprint remembers a fingerprint.
func (m *memory) setFingerprint(key client.ObjectKey, p fingerprinted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prints == nil {
		m.prints = map[client.ObjectKey]fingerprinted{}
	}
	m.prints[key] = p
}

// setExpected remembers the state that an operation left.
func (m *memory) setExpected(key client.ObjectKey, state tool.State, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.expect == nil {
		m.expect = map[client.ObjectKey]expectation{}
	}
	m.expect[key] = expectation{state: state, until: now.Add(expectFor)}
}

// expected returns the state of the release, given what watches observe.
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

// get returns what is known of a record, or nothing if the record or the connection is another one.
func (m *memory) get(key client.ObjectKey, stamp string, through *workload.Cluster) knowledge {
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

// markChanged records that objects of a release changed. It reports whether that matters.
func (m *memory) markChanged(key client.ObjectKey, statusOnly bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.known[key]
	if k == nil || k.health == nil && k.drift == nil {
		return false
	}
	k.changed = true
	k.specChanged = k.specChanged || !statusOnly
	return k.health != nil || !statusOnly
}

func (m *memory) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
	delete(m.expect, key)
	delete(m.prints, key)
}
