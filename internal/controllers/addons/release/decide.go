package release

import (
	"fmt"
	"strings"
	"time"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// action is what a reconcile does, at most one thing.
type action string

const (
	// nothing: the release is as wanted, or an event will tell when there is more to do.
	nothing action = "nothing"
	apply   action = "apply"
	remove  action = "remove"
	// revert undoes an upgrade whose objects did not become ready, or removes what was never there before.
	revert action = "revert"
	// check looks whether the objects are ready, compare whether others have changed them, and correct writes them again.
	check   action = "check"
	compare action = "compare"
	correct action = "correct"
	// abort ends an operation that nobody wants any more.
	abort action = "abort"
	// finish lets the object go; abandon does so although something is left on the cluster.
	finish  action = "finish"
	abandon action = "abandon"
)

// problem is why nothing can be done.
type problem struct {
	reason, message string
	// after is when to try again; 0 means that an event will tell.
	after time.Duration
	// soon says that it will pass in a moment.
	soon bool
}

// facts are what is known when the choice is made.
type facts struct {
	now      time.Time
	deleting time.Time
	spec     *addonsv1.HelmReleaseProxySpec
	status   *addonsv1.HelmReleaseProxyStatus
	// installed says that the release was deployed once.
	installed bool

	// gone says that the Cluster is, held that it is paused, and initialized that its control plane once answered.
	gone, held, initialized bool
	// cluster is what keeps the cluster from being worked on, and pack what keeps the package from being known.
	cluster, pack *problem
	// rival is an older HelmReleaseProxy with the same release, contested whether there is any other.
	rival     string
	contested string
	// missing are add-ons that are not ready on the cluster.
	missing []string

	state tool.State
	want  tool.Want
	// documents are what the values of want are read from, when that is needed.
	documents   [][]byte
	fingerprint string
	// floating says that the version may stand for another one tomorrow.
	floating bool

	// running is the subject of the operation under way, and since when.
	running string
	since   time.Time
	known   knowledge
}

// choice is what to do, and when to look again at the latest.
type choice struct {
	do    action
	wait  *problem
	after time.Duration
}

// How long to wait after failures in a row, and how often to look at a version that may move.
const (
	firstRetry    = 5 * time.Second
	maxRetry      = 5 * time.Minute
	terminalRetry = 10 * time.Minute
	// checkEvery bounds how often the readiness of changing objects is asked for.
	checkEvery     = 2 * time.Second
	defaultTimeout = 10 * time.Minute
)

func decide(f facts) choice {
	switch {
	case f.running != "" && f.running != f.subject():
		return choice{do: abort}
	case f.running != "":
		return choice{do: nothing, after: max(f.since.Add(patience).Sub(f.now), 0)}
	case f.held:
		return choice{do: nothing}
	case !f.deleting.IsZero():
		return decideRemoval(f)
	case f.once() && f.installed:
		return choice{do: nothing}
	}
	if p := f.obstacle(); p != nil {
		return waiting(p)
	}
	if f.settled() {
		return decideSettled(f)
	}
	if pause := f.pause(); pause > 0 {
		return choice{do: nothing, after: pause}
	}
	if f.reverted() {
		return choice{do: nothing}
	}
	return choice{do: apply}
}

// obstacle is what a release waits for before anything is done, nil if that is nothing.
func (f facts) obstacle() *problem {
	switch {
	case f.rival != "":
		return &problem{reason: addonsv1.ReleaseClaimedReason, message: fmt.Sprintf("HelmReleaseProxy %q already manages this release", f.rival)}
	case f.cluster != nil:
		return f.cluster
	case len(f.missing) > 0:
		return &problem{reason: addonsv1.WaitingForDependenciesReason, message: "Waiting for " + few(f.missing) + " to become ready on the cluster"}
	default:
		return f.pack
	}
}

// reverted says that what is wanted was tried, and taken back.
func (f facts) reverted() bool {
	a := f.status.Attempt
	return a != nil && a.Reverted && a.Fingerprint == f.fingerprint
}

func decideRemoval(f facts) choice {
	switch {
	case f.gone, f.once(), f.never():
		return choice{do: finish}
	case f.cluster != nil && f.giveUp() > 0 && !f.now.Before(f.deleting.Add(f.giveUp())):
		return choice{do: abandon}
	case f.cluster != nil:
		c := waiting(f.cluster)
		if f.giveUp() > 0 {
			c.after = sooner(c.after, f.deleting.Add(f.giveUp()).Sub(f.now))
		}
		return c
	case f.rival != "", !f.state.Found:
		return choice{do: finish}
	}
	if pause := f.pause(); pause > 0 {
		return choice{do: nothing, after: pause}
	}
	return choice{do: remove}
}

// decideSettled looks after a release that is as wanted.
func decideSettled(f facts) choice {
	c := choice{do: nothing}
	if f.floating {
		c.after = f.known.resolveEvery
	}
	for _, look := range []func(facts) choice{decideHealth, decideDrift} {
		next := look(f)
		if next.do != nothing {
			return next
		}
		c.after = sooner(c.after, next.after)
	}
	return c
}

// decideHealth looks whether the objects are ready, if somebody waits for that.
func decideHealth(f facts) choice {
	k := f.known
	switch {
	case !f.watchesHealth():
		return choice{do: nothing}
	case k.health == nil, k.stirred && f.now.Sub(k.checked) >= checkEvery:
		return choice{do: check}
	case k.stirred:
		return choice{do: nothing, after: k.checked.Add(checkEvery).Sub(f.now)}
	case k.health.Ready:
		return choice{do: nothing}
	case f.overdue() > 0:
		return choice{do: nothing, after: f.overdue()}
	case f.spec.Options.Atomic && !f.ready():
		return choice{do: revert}
	default:
		return choice{do: nothing}
	}
}

// decideDrift looks whether others have changed the objects, if that is asked for.
func decideDrift(f facts) choice {
	switch {
	case !f.watchesDrift():
		return choice{do: nothing}
	case f.known.drift == nil, f.known.touched:
		return choice{do: compare}
	case len(*f.known.drift) == 0, f.spec.Drift.Mode != addonsv1.DriftCorrect:
		return choice{do: nothing}
	}
	if pause := f.pause(); pause > 0 {
		return choice{do: nothing, after: pause}
	}
	return choice{do: correct}
}

// subject tells an operation that is still wanted from one that is not.
func (f facts) subject() string {
	if !f.deleting.IsZero() {
		return "remove"
	}
	return f.fingerprint
}

func (f facts) once() bool { return f.spec.ReconcileStrategy == addonsv1.InstallOnce }

// never says that nothing can have been put onto the cluster.
func (f facts) never() bool {
	return !f.initialized && f.status.Applied == nil && f.status.Attempt == nil && f.status.Revision == 0
}

// settled says that what is on the cluster was made from what is wanted, and that nobody has changed the record of it since.
func (f facts) settled() bool {
	a := f.status.Applied
	return a != nil && a.Fingerprint == f.fingerprint && f.state.Found && f.state.Status == tool.Deployed && f.state.Stamp == a.Stamp
}

// ready says that the release has been seen ready since it was applied.
func (f facts) ready() bool {
	for _, c := range f.status.Conditions {
		if c.Type == addonsv1.ReleaseReady {
			return c.Status == "True"
		}
	}
	return false
}

func (f facts) watchesHealth() bool {
	return f.spec.Options.Wait || f.spec.Options.Atomic || len(f.spec.Health) > 0
}

func (f facts) watchesDrift() bool {
	return f.spec.Drift != nil && f.spec.Drift.Mode != addonsv1.DriftOff
}

// overdue is how long objects still have to become ready.
func (f facts) overdue() time.Duration {
	timeout := defaultTimeout
	if t := f.spec.Options.Timeout; t != nil && t.Duration > 0 {
		timeout = t.Duration
	}
	if f.status.Applied == nil || f.status.Applied.At == nil {
		return timeout
	}
	return f.status.Applied.At.Add(timeout).Sub(f.now)
}

func (f facts) giveUp() time.Duration {
	if u := f.spec.Options.Uninstall; u != nil && u.GiveUpAfter != nil {
		return u.GiveUpAfter.Duration
	}
	return 0
}

// pause is how long to wait before what failed is tried again. What was not tried yet does not wait.
func (f facts) pause() time.Duration {
	a := f.status.Attempt
	if a == nil || a.Fingerprint != f.subject() {
		return 0
	}
	wait := min(firstRetry<<min(a.Failures-1, 10), maxRetry)
	if a.Terminal {
		wait = terminalRetry
	}
	return a.At.Add(wait).Sub(f.now)
}

// patience is how long something may take before it is told that it is under way.
const patience = 2 * time.Second

// passing says that there will be more to tell in a moment, so that telling now can wait.
func (c choice) passing(f facts) bool {
	switch c.do {
	case apply, remove, revert, check, compare, correct, abort:
		return true
	case nothing:
		return c.wait != nil && c.wait.soon || f.running != "" && f.now.Sub(f.since) < patience
	default:
		return false
	}
}

func waiting(p *problem) choice { return choice{do: nothing, wait: p, after: p.after} }

// sooner is the shorter of two times, where 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// few names the first three.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
