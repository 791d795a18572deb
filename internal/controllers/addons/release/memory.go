package release

import (
	"crypto/sha256"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/reconcile"
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

// memory holds what is known by HelmReleaseProxy.
type memory struct {
	known  reconcile.Memory[knowledge]
	expect reconcile.Memory[expectation]
	prints reconcile.Memory[fingerprinted]
	// deletions and applied are when releases were deleted and applied.
	deletions, applied reconcile.Ages
}

// fingerprintFor returns the last fingerprint if it was made from these inputs.
func (m *memory) fingerprintFor(key client.ObjectKey, inputs [sha256.Size]byte) (fingerprinted, bool) {
	p := m.prints.Get(key)
	return p, p.inputs == inputs
}

// setFingerprint remembers a fingerprint.
func (m *memory) setFingerprint(key client.ObjectKey, p fingerprinted) {
	m.prints.Update(key, func(last *fingerprinted) { *last = p })
}

// setExpected remembers the state that an operation left.
func (m *memory) setExpected(key client.ObjectKey, state tool.State, now time.Time) {
	m.expect.Update(key, func(e *expectation) { *e = expectation{state: state, until: now.Add(expectFor)} })
}

// expected returns the state of the release, given what watches observe. Only reconciles call it
// and setExpected, one at a time for a key.
func (m *memory) expected(key client.ObjectKey, observed tool.State, now time.Time) tool.State {
	e := m.expect.Get(key)
	if e.until.IsZero() {
		return observed
	}
	if observed == e.state || !now.Before(e.until) || observed.Revision > e.state.Revision {
		m.expect.Forget(key)
		return observed
	}
	return e.state
}

// get returns what is known of a record, or nothing if the record or the connection is another one.
func (m *memory) get(key client.ObjectKey, stamp string, through *workload.Cluster) knowledge {
	if k := m.known.Get(key); k.stamp == stamp && k.through == through {
		return k
	}
	return knowledge{}
}

// update changes what is known.
func (m *memory) update(key client.ObjectKey, change func(*knowledge)) { m.known.Update(key, change) }

// markChanged records that objects of a release changed. It reports whether that matters.
func (m *memory) markChanged(key client.ObjectKey, statusOnly bool) (matters bool) {
	m.known.UpdateKnown(key, func(k *knowledge) {
		if k.health == nil && k.drift == nil {
			return
		}
		k.changed = true
		k.specChanged = k.specChanged || !statusOnly
		matters = k.health != nil || !statusOnly
	})
	return matters
}

func (m *memory) forget(key client.ObjectKey) {
	m.known.Forget(key)
	m.expect.Forget(key)
	m.prints.Forget(key)
	m.deletions.Forget(key)
	m.applied.Forget(key)
}
