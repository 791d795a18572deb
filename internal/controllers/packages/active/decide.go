package active

import (
	"fmt"
	"hash/fnv"
	"time"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

const (
	defaultInterval      = 24 * time.Hour
	defaultShortInterval = time.Hour
	// minInterval keeps a slip of the pen from hurting a registry.
	minInterval = time.Second
	// firstRetry is how soon a registry is asked again that never answered.
	firstRetry = 10 * time.Second
	// askRetry is the same for a cluster that is connected.
	askRetry = 5 * time.Second
	// askAgain is how long an answer stands at least. That Drover has upgraded a cluster is told sooner.
	askAgain = time.Minute
	// spread is the part of an interval that questions of many objects are spread over.
	spread = 10
)

// choice is what to do. Several things can be done at once: none of them waits for another.
type choice struct {
	state  packagesv1.BundleControllerStateEnum
	detail string

	// ask the cluster for its version, look for the newest bundle, fetch the active one.
	ask, look, fetch bool
	// activate is a bundle to be put into the spec.
	activate string
	// sync makes credentials as they should be, here and on the cluster.
	sync bool

	// withdraw takes credentials back from the cluster, and ends says that nothing more is to be done for an object that is deleted.
	// abandon is why that was given up, if it was.
	withdraw, ends bool
	abandon        string

	// after is when to look again, 0 if events will tell.
	after time.Duration
}

// decide is the whole of the choice.
func decide(f facts) choice {
	switch {
	case f.elsewhere:
		return choice{state: packagesv1.ControllerIgnored}
	case !f.deleting.IsZero():
		return decideRemoval(f)
	}
	c := choice{ask: f.unasked && f.connected != nil, activate: activation(f), sync: true}
	c.state, c.detail = state(f)
	var waits [4]time.Duration
	c.look, waits[0] = lookDue(f)
	c.fetch, waits[1] = fetchDue(f)
	if f.unreachable != nil {
		waits[2] = f.unreachable.after
	}
	waits[3] = f.credentials.after
	c.after = soonest(waits[:]...)
	return c
}

// decideRemoval waits for the cluster, but not for ever.
//
//	gone, or taken back ──▶ end          answers ──▶ take back
//	does not answer for WayOut, or the user gives up ──▶ end, and say so
func decideRemoval(f facts) choice {
	c := choice{state: f.status.State, detail: f.status.Detail}
	left := f.credentials.wayOut - f.now.Sub(f.deleting)
	switch {
	case !f.held, f.gone, f.credentials.withdrawn:
		c.ends = true
	case f.abandoned:
		c.ends, c.abandon = true, "its annotation says so"
	case left <= 0:
		c.ends, c.abandon = true, fmt.Sprintf("it did not answer for %s", f.credentials.wayOut)
	case f.connected != nil:
		c.withdraw = f.credentials.after <= 0
		c.after = soonest(left, f.credentials.after)
	default:
		c.after = left
		if f.unreachable != nil {
			c.after = soonest(left, f.unreachable.after)
		}
	}
	return c
}

// soonest is the shortest wait, leaving out those that are none.
func soonest(waits ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range waits {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// newest is the name of the newest bundle that is known.
func (f *facts) newest() string {
	if f.look.place == f.place && f.look.name != "" {
		return f.look.name
	}
	return f.status.LatestBundle
}

// state is what has always been told in one word and a sentence.
func state(f facts) (state packagesv1.BundleControllerStateEnum, detail string) {
	active := f.spec.ActiveBundle
	switch {
	case f.unreachable != nil:
		return packagesv1.ControllerDisconnected, f.unreachable.message
	case f.look.err != nil && !f.look.refused:
		return packagesv1.ControllerDisconnected, bound(f.look.err.Error())
	case f.unasked:
		return f.status.State, f.status.Detail
	case active == "":
		return "", problemOf(f.look)
	case f.active == nil:
		return packagesv1.ControllerActive, notPresent(f)
	case newer(f.newest(), active):
		return packagesv1.ControllerUpgradeAvailable, f.newest() + " available"
	default:
		return packagesv1.ControllerActive, problemOf(f.look)
	}
}

func problemOf(l look) string {
	if l.err == nil {
		return ""
	}
	return bound(l.err.Error())
}

func notPresent(f facts) string {
	text := fmt.Sprintf("activeBundle %q not present on cluster", f.spec.ActiveBundle)
	if f.fetch.err != nil && f.fetch.place == f.activePlace {
		text += ": " + f.fetch.err.Error()
	}
	return bound(text)
}

// activation is the bundle to be put into the spec, if the user leaves that to the controller. It must be one that packages can be installed
// from, and the cluster must have said itself that it has the right version.
func activation(f facts) string {
	if !f.ready() || f.latest == nil || f.latestFault != nil {
		return ""
	}
	if name, err := bundle.ParseName(f.latest.Name); err != nil || name.Kubernetes() != f.version {
		return ""
	}
	if f.spec.ActiveBundle == "" {
		return f.latest.Name
	}
	if !newer(f.latest.Name, f.spec.ActiveBundle) {
		return ""
	}
	switch f.spec.UpgradePolicy {
	case packagesv1.UpgradeAlways:
		return f.latest.Name
	case packagesv1.UpgradePatch:
		if f.active != nil && bundle.Compare(f.active, f.latest).KeepsMinor(f.installed) {
			return f.latest.Name
		}
	}
	return ""
}

// lookDue says whether to look for the newest bundle now, or else when.
func lookDue(f facts) (bool, time.Duration) {
	if f.place == "" {
		return false, 0
	}
	if f.look.place != f.place {
		return true, 0
	}
	wait := f.interval() + jitter(f.identity, f.interval())
	if f.look.err != nil {
		if f.look.access != f.access {
			return true, 0
		}
		wait = f.retry()
	}
	return elapsed(f.now, f.look.at, wait)
}

// fetchDue is the same for the active bundle, which is fetched if it is not here.
func fetchDue(f facts) (bool, time.Duration) {
	if f.spec.ActiveBundle == "" || f.active != nil || f.activePlace == "" {
		return false, 0
	}
	if f.fetch.place != f.activePlace || f.fetch.err != nil && f.fetch.access != f.access {
		return true, 0
	}
	wait := firstRetry // It is here already, and the cache does not know yet.
	if f.fetch.err != nil {
		wait = f.retry()
	}
	return elapsed(f.now, f.fetch.at, wait)
}

func elapsed(now, since time.Time, wait time.Duration) (bool, time.Duration) {
	left := wait - now.Sub(since)
	return left <= 0, max(left, 0)
}

// jitter is a part of the interval, the same each time for one object.
func jitter(identity string, interval time.Duration) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(identity))
	return time.Duration(float64(interval) / spread * float64(sum.Sum32()) / (1 << 32))
}
