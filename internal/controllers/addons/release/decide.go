package release

import (
	"strconv"
	"time"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// action is what a reconcile does, at most one thing.
type action string

const (
	// nothing: the release is as wanted, or an event follows.
	nothing action = "nothing"
	apply   action = "apply"
	remove  action = "remove"
	// revert rolls back an upgrade whose objects did not become ready, or uninstalls a first
	// installation.
	revert action = "revert"
	// check checks readiness, compare detects drift, and correct rewrites the objects.
	check   action = "check"
	compare action = "compare"
	correct action = "correct"
	// abort cancels an operation that is no longer wanted.
	abort action = "abort"
	// finish removes the finalizer; abandon does so although the release may still exist.
	finish  action = "finish"
	abandon action = "abandon"
)

// problem is why nothing can be done.
type problem struct {
	reason, message string
	// after is when to retry; 0 if an event follows.
	after time.Duration
	// transient reports that it will soon be over.
	transient bool
}

// facts are the inputs of the decision.
type facts struct {
	now      time.Time
	deleting time.Time
	// deletingFor is how long the deletion is known, and appliedFor how long ago the release was
	// applied, whatever the clock did since.
	deletingFor, appliedFor time.Duration

	spec   *addonsv1.HelmReleaseProxySpec
	status *addonsv1.HelmReleaseProxyStatus
	// installed reports that the release was deployed once.
	installed bool

	// clusterGone reports that the Cluster is deleted, paused that it is paused, and initialized
	// that its control plane is initialized.
	clusterGone, paused, initialized bool
	// denied reports that the release may not use the cluster, and ofPackage that a Package wrote
	// it.
	denied, ofPackage bool
	// clusterProblem is why the cluster is not available, and packageProblem why the package is not
	// known.
	clusterProblem, packageProblem *problem
	// owner is an older HelmReleaseProxy with the same release, claimant any other one.
	owner    string
	claimant string
	// waitingFor are dependencies that are not ready on the cluster.
	waitingFor []string

	state tool.State
	want  tool.Want
	// documents are what values are merged from.
	documents   [][]byte
	fingerprint string
	// floating reports that the version may resolve to another one later.
	floating bool

	// running is the subject of the current operation, and since when it runs.
	running string
	since   time.Time
	known   knowledge
}

// choice is what to do, and when to reconcile again at the latest.
type choice struct {
	do    action
	wait  *problem
	after time.Duration
}

// maxNamed is how many names a message has.
const maxNamed = 3

// Delays of retries and checks.
const (
	firstRetry    = 5 * time.Second
	maxRetry      = 5 * time.Minute
	terminalRetry = 10 * time.Minute
	// checkEvery limits how often readiness is checked.
	checkEvery = 2 * time.Second
	// confirmEvery is how often an unconfirmed target is checked.
	confirmEvery = time.Second
)

func decide(f facts) choice {
	switch {
	case f.running != "" && f.running != f.subject():
		return choice{do: abort}
	case f.running != "":
		return choice{do: nothing, after: max(f.since.Add(patience).Sub(f.now), 0)}
	case f.paused:
		return choice{do: nothing}
	case !f.deleting.IsZero():
		return decideRemoval(f)
	case f.installOnce() && f.installed:
		return choice{do: nothing}
	}
	if p := f.blocker(); p != nil {
		return waiting(p)
	}
	if f.settled() {
		return decideSettled(f)
	}
	if pause := f.backoff(); pause > 0 {
		return choice{do: nothing, after: pause}
	}
	if f.reverted() {
		return choice{do: nothing}
	}
	return choice{do: apply}
}

// blocker returns what a release waits for, or nil.
func (f facts) blocker() *problem {
	switch {
	case f.owner != "":
		return &problem{reason: addonsv1.ReleaseClaimedReason, message: "HelmReleaseProxy " + quoted(f.owner) + " already manages this release"}
	case f.clusterProblem != nil:
		return f.clusterProblem
	case len(f.waitingFor) > 0:
		return &problem{reason: addonsv1.WaitingForDependenciesReason, message: "Waiting for " + text.FirstN(f.waitingFor, maxNamed) + " to become ready on the cluster"}
	default:
		return f.packageProblem
	}
}

// reverted reports whether the wanted release was tried and rolled back.
func (f facts) reverted() bool {
	a := f.status.Attempt
	return a != nil && a.Reverted && a.Fingerprint == f.fingerprint
}

func decideRemoval(f facts) choice {
	switch {
	case f.denied && f.status.Applied != nil:
		return choice{do: abandon}
	case f.denied:
		return choice{do: finish} // it was never permitted to install anything
	case f.clusterGone, f.installOnce(), f.neverInstalled():
		return choice{do: finish}
	case f.clusterProblem != nil && f.giveUpAfter() > 0 && f.deletingFor >= f.giveUpAfter():
		return choice{do: abandon}
	case f.clusterProblem != nil:
		c := waiting(f.clusterProblem)
		if f.giveUpAfter() > 0 {
			c.after = earlier(c.after, f.giveUpAfter()-f.deletingFor)
		}
		return c
	case f.owner != "", !f.state.Found:
		return choice{do: finish}
	}
	if pause := f.backoff(); pause > 0 {
		return choice{do: nothing, after: pause}
	}
	return choice{do: remove}
}

// decideSettled decides for a release that is as wanted.
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
		c.after = earlier(c.after, next.after)
	}
	return c
}

// decideHealth decides about readiness, if that is waited for.
func decideHealth(f facts) choice {
	k := f.known
	switch {
	case !f.watchesHealth():
		return choice{do: nothing}
	case k.health == nil, k.changed && f.now.Sub(k.checked) >= checkEvery:
		return choice{do: check}
	case k.changed:
		return choice{do: nothing, after: k.checked.Add(checkEvery).Sub(f.now)}
	case k.health.Ready:
		return choice{do: nothing}
	case f.timeLeft() > 0:
		return choice{do: nothing, after: f.timeLeft()}
	case f.spec.Options.Atomic && !f.ready():
		return choice{do: revert}
	default:
		return choice{do: nothing}
	}
}

// decideDrift decides about drift, if that is asked for.
func decideDrift(f facts) choice {
	switch {
	case !f.watchesDrift():
		return choice{do: nothing}
	case f.known.drift == nil, f.known.specChanged:
		return choice{do: compare}
	case len(*f.known.drift) == 0, f.spec.Drift.Mode != addonsv1.DriftCorrect:
		return choice{do: nothing}
	}
	if pause := f.backoff(); pause > 0 {
		return choice{do: nothing, after: pause}
	}
	return choice{do: correct}
}

// subject identifies the wanted operation.
func (f facts) subject() string {
	if !f.deleting.IsZero() {
		return "remove"
	}
	return f.fingerprint
}

func (f facts) installOnce() bool { return f.spec.ReconcileStrategy == addonsv1.InstallOnce }

// neverInstalled reports that nothing can be on the cluster.
func (f facts) neverInstalled() bool {
	return !f.initialized && f.status.Applied == nil && f.status.Attempt == nil && f.status.Revision == 0
}

// settled reports whether the release on the cluster was made from what is wanted and was not
// changed since.
func (f facts) settled() bool {
	a := f.status.Applied
	return a != nil && a.Fingerprint == f.fingerprint && f.state.Found && f.state.Status == tool.Deployed && f.state.Stamp == a.Stamp
}

// ready reports whether the release has become ready since it was applied.
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

// timeLeft returns how long objects still have to become ready.
func (f facts) timeLeft() time.Duration {
	timeout := addonsv1.DefaultTimeout
	if t := f.spec.Options.Timeout; t != nil && t.Duration > 0 {
		timeout = t.Duration
	}
	if f.status.Applied == nil || f.status.Applied.At == nil {
		return timeout
	}
	return timeout - f.appliedFor
}

func (f facts) giveUpAfter() time.Duration {
	if u := f.spec.Options.Uninstall; u != nil && u.GiveUpAfter != nil {
		return u.GiveUpAfter.Duration
	}
	return 0
}

// backoff returns how long to wait before a failed operation is repeated. A new operation does not
// wait.
func (f facts) backoff() time.Duration {
	a := f.status.Attempt
	if a == nil || a.Fingerprint != f.subject() {
		return 0
	}
	wait := min(firstRetry<<min(a.Failures-1, 10), maxRetry)
	if a.Terminal {
		wait = terminalRetry
	}
	return elapsed.Left(wait, a.At.Time, f.now)
}

// patience is how long an operation may run before the status reports it.
const patience = 2 * time.Second

// transient reports that the status will soon change again, so that writing it can wait.
func (c choice) transient(f facts) bool {
	switch c.do {
	case apply, remove, revert, check, compare, correct, abort:
		return true
	case nothing:
		return c.wait != nil && c.wait.transient || f.running != "" && f.now.Sub(f.since) < patience
	default:
		return false
	}
}

// quoted returns the name of another release for a message.
func quoted(name string) string {
	if name == elsewhere {
		return name
	}
	return strconv.Quote(name)
}

func waiting(p *problem) choice { return choice{do: nothing, wait: p, after: p.after} }

// earlier returns the shorter of two delays, where 0 means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
