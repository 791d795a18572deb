package webhookcert

import (
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

// overlap is how long a new CA is trusted before it is used, and an old one after it was.
const overlap = time.Hour

// step is one change to the material.
type step string

const (
	stepNone      step = "None"
	stepCreate    step = "Create"
	stepAddCA     step = "AddCA"
	stepIssueLeaf step = "IssueLeaf"
	stepDropCAs   step = "DropCAs"
)

// plan returns the next step, or stepNone and when to call it again. It is called until it returns
// stepNone.
func plan(now time.Time, m *material, names []string) (step, time.Time) {
	if m == nil || !now.Before(m.ca.Certs[0].NotAfter) || pki.NotYetValid(m.ca.Certs[0], now) {
		return stepCreate, now
	}
	if pki.Due(m.ca.Certs[0], now) {
		return stepAddCA, now
	}
	if leafDue(now, m, names) {
		return stepIssueLeaf, now
	}
	if len(m.ca.Certs) > 1 && m.byNewestCA() && !now.Before(droppable(m)) {
		return stepDropCAs, now
	}
	return stepNone, nextChange(m)
}

// leafDue reports whether the serving certificate must be replaced by one of the newest CA. While
// that CA is too new to be trusted everywhere, only an invalid certificate is replaced.
func leafDue(now time.Time, m *material, names []string) bool {
	useless := !now.Before(m.leaf.Leaf.NotAfter) || pki.NotYetValid(m.leaf.Leaf, now) || !pki.Covers(m.leaf.Leaf, names)
	if useless {
		return true
	}
	if now.Before(usable(m)) {
		return false
	}
	return !m.byNewestCA() || pki.Due(m.leaf.Leaf, now)
}

// nextChange returns the next time at which plan may return another step.
func nextChange(m *material) time.Time {
	times := []time.Time{pki.RenewAt(m.ca.Certs[0])}
	switch {
	case !m.byNewestCA(): // the leaf is replaced as soon as that CA may issue, regardless of its remaining lifetime
		times = append(times, usable(m), m.leaf.Leaf.NotAfter)
	case len(m.ca.Certs) > 1:
		times = append(times, pki.RenewAt(m.leaf.Leaf), droppable(m))
	default:
		times = append(times, pki.RenewAt(m.leaf.Leaf))
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// droppable returns when an old CA is no longer needed, once the leaf is of the newest.
func droppable(m *material) time.Time { return pki.IssuedAt(m.leaf.Leaf).Add(overlap) }

// usable returns when the newest CA may start to issue: at once if it is the only one.
func usable(m *material) time.Time {
	if len(m.ca.Certs) == 1 {
		return pki.IssuedAt(m.ca.Certs[0])
	}
	return pki.IssuedAt(m.ca.Certs[0]).Add(overlap)
}

func (m *material) byNewestCA() bool { return m.leaf.Leaf.CheckSignatureFrom(m.ca.Certs[0]) == nil }
