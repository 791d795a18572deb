package active

import (
	"fmt"
	"hash/fnv"
	"time"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

const (
	defaultInterval      = 24 * time.Hour
	defaultShortInterval = time.Hour
	// minInterval protects registries from a typing error.
	minInterval = time.Second
	// firstRetry is the retry interval for a registry that never responded.
	firstRetry = 10 * time.Second
	// askRetry is the retry interval for a connected cluster.
	askRetry = 5 * time.Second
	// askAgain is the minimum interval between queries. An upgrade by Drover triggers one earlier.
	askAgain = time.Minute
	// spread is the fraction of the interval over which the checks of many objects are spread.
	spread = 10
)

// choice lists the actions to take. They are independent of each other.
type choice struct {
	state  packagesv1.BundleControllerStateEnum
	detail string

	// queryVersion queries the version of the cluster, checkLatest checks for the newest bundle,
	// and checkActive downloads the active one.
	queryVersion, checkLatest, checkActive bool
	// activate is the bundle to set in the spec.
	activate string
	// sync updates credentials, locally and on the cluster.
	sync bool

	// withdraw deletes the credentials on the cluster, and ends completes a deletion. abandon is
	// the reason why credentials are left on the cluster.
	withdraw, ends bool
	abandon        string

	// after is the time until the next reconcile, 0 if only events trigger it.
	after time.Duration
}

// decide returns the actions for the facts.
func decide(f facts) choice {
	switch {
	case f.ignored:
		return choice{state: packagesv1.ControllerIgnored}
	case !f.deleting.IsZero():
		return decideRemoval(f)
	}
	c := choice{queryVersion: f.versionStale && f.connected != nil, activate: activation(f), sync: true}
	c.state, c.detail = state(f)
	var waits [4]time.Duration
	c.checkLatest, waits[0] = latestCheckDue(f)
	c.checkActive, waits[1] = activeCheckDue(f)
	if f.unreachable != nil {
		waits[2] = f.unreachable.after
	}
	waits[3] = f.credentials.after
	c.after = soonest(waits[:]...)
	return c
}

// decideRemoval waits for the cluster for a limited time.
//
//	Cluster gone, or credentials deleted        ──▶ end
//	reachable                                   ──▶ withdraw
//	DeletionTimeout elapsed, or user abandons   ──▶ end and record an event
func decideRemoval(f facts) choice {
	c := choice{state: f.status.State, detail: f.status.Detail}
	left := f.credentials.deletionTimeout - f.deletingFor
	switch {
	case !f.hasFinalizer, f.gone, f.credentials.withdrawn:
		c.ends = true
	case f.abandoned:
		c.ends, c.abandon = true, "the object is annotated with "+packagesv1.AbandonAnnotation
	case left <= 0:
		c.ends, c.abandon = true, fmt.Sprintf("the cluster was unreachable for %s", f.credentials.deletionTimeout)
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

// soonest returns the shortest positive duration, or 0.
func soonest(waits ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range waits {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// newest returns the name of the newest known bundle.
func (f *facts) newest() string {
	if f.latestCheck.place == f.place && f.latestCheck.name != "" {
		return f.latestCheck.name
	}
	return f.status.LatestBundle
}

// state returns the state and its detail, in the wording that existing tools expect.
func state(f facts) (state packagesv1.BundleControllerStateEnum, detail string) {
	active := f.spec.ActiveBundle
	switch {
	case f.unreachable != nil:
		return packagesv1.ControllerDisconnected, f.unreachable.message
	case f.latestCheck.err != nil && !f.latestCheck.refused:
		return packagesv1.ControllerDisconnected, text.Truncate(f.latestCheck.err.Error())
	case f.versionStale:
		return f.status.State, f.status.Detail
	case active == "":
		return "", problemOf(f.latestCheck)
	case f.active == nil:
		return packagesv1.ControllerActive, notPresent(f)
	case newer(f.newest(), active):
		return packagesv1.ControllerUpgradeAvailable, f.newest() + " available"
	default:
		return packagesv1.ControllerActive, problemOf(f.latestCheck)
	}
}

func problemOf(l check) string {
	if l.err == nil {
		return ""
	}
	return text.Truncate(l.err.Error())
}

func notPresent(f facts) string {
	message := fmt.Sprintf("activeBundle %q not present on cluster", f.spec.ActiveBundle)
	if f.activeCheck.err != nil && f.activeCheck.place == f.activePlace {
		message += ": " + f.activeCheck.err.Error()
	}
	return text.Truncate(message)
}

// activation returns the bundle to activate, if the spec leaves that to the controller. The bundle
// must be usable and match the version that the cluster reported.
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

// latestCheckDue reports whether to check for the newest bundle now, or else when.
func latestCheckDue(f facts) (bool, time.Duration) {
	if f.place == "" {
		return false, 0
	}
	if f.latestCheck.place != f.place {
		return true, 0
	}
	wait := f.interval() + jitter(f.identity, f.interval())
	if f.latestCheck.err != nil {
		if f.latestCheck.access != f.access {
			return true, 0
		}
		wait = f.retry()
	}
	return elapsed(f.now, f.latestCheck.at, wait)
}

// activeCheckDue reports the same for the active bundle, which is downloaded if it is missing.
func activeCheckDue(f facts) (bool, time.Duration) {
	if f.spec.ActiveBundle == "" || f.active != nil || f.activePlace == "" {
		return false, 0
	}
	if f.activeCheck.place != f.activePlace || f.activeCheck.err != nil && f.activeCheck.access != f.access {
		return true, 0
	}
	wait := firstRetry // it exists, but the cache lags
	if f.activeCheck.err != nil {
		wait = f.retry()
	}
	return elapsed(f.now, f.activeCheck.at, wait)
}

func elapsed(now, since time.Time, wait time.Duration) (bool, time.Duration) {
	left := wait - now.Sub(since)
	return left <= 0, max(left, 0)
}

// jitter returns a part of the interval that is constant for an object.
func jitter(identity string, interval time.Duration) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(identity))
	return time.Duration(float64(interval) / spread * float64(sum.Sum32()) / (1 << 32))
}
