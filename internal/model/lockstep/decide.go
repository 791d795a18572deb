package lockstep

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/base/text"
)

// DefaultTimeout is how long an upgrade waits for the add-ons of a stage before it reports that
// they take too long.
const DefaultTimeout = 30 * time.Minute

// Facts are what Decide depends on.
type Facts struct {
	// Recorded is the upgrade in progress, or nil.
	Recorded *Upgrade
	// Wanted is the version in the spec, and Present that of the existing control plane; empty if
	// there is none.
	Wanted, Present string
	// ControlPlaneDone and WorkersDone report that all machines have the versions in the spec and are
	// ready.
	ControlPlaneDone, WorkersDone bool
	// AddOns are those with a stage.
	AddOns []AddOn
	// Skip is the version that is upgraded to without waiting, see SkipAddOnWaitAnnotation.
	Skip    string
	Timeout time.Duration
	Now     time.Time
}

// Decision is what an upgrade does now.
type Decision struct {
	// Upgrade is the upgrade in progress, or nil. It is recorded.
	Upgrade *Upgrade
	// Version is the version of the control plane.
	Version string
	// HoldWorkers reports that existing workers keep their version.
	HoldWorkers bool
	// Waiting are the add-ons that the upgrade waits for, and Skipped those that it no longer waits
	// for.
	Waiting, Skipped []AddOn
	// TimedOut reports that they take too long.
	TimedOut bool
	// Next is when to decide again if nothing changes, or 0.
	Next time.Duration
}

// Decide moves an upgrade forward as far as possible. Without an upgrade, it is the wanted version.
func Decide(f Facts) Decision {
	u := begin(f)
	if u == nil {
		return Decision{Version: f.Wanted}
	}
	d := Decision{Upgrade: u}
	for moved := true; moved; {
		moved = d.advance(f)
	}
	if d.Upgrade == nil {
		return Decision{Version: f.Wanted, Skipped: d.Skipped}
	}
	d.Version, d.HoldWorkers = u.To, !u.reached(Workers)
	if u.Step == BeforeControlPlane {
		d.Version = u.From
	}
	if len(d.Waiting) > 0 {
		left := elapsed.Left(f.Timeout, u.Since.Time, f.Now)
		d.TimedOut, d.Next = left <= 0, max(left, 0)
	}
	return d
}

// begin returns the upgrade to continue, a new one, or nil. Another version in the spec starts from
// the version that the control plane has. A control plane that has the version already, or a newer
// one, isn't upgraded.
func begin(f Facts) *Upgrade {
	switch r := f.Recorded; {
	case f.Present == "":
		return nil
	case r != nil && r.To == f.Wanted && (f.Present == r.From || f.Present == r.To):
		u := *r
		if f.Present == u.To && u.Step == BeforeControlPlane {
			u.enter(ControlPlane, f.Now) // The record was lost, and versions never go back.
		}
		return &u
	case newer(f.Wanted, f.Present):
		return &Upgrade{From: f.Present, To: f.Wanted, Step: BeforeControlPlane, Since: metav1.NewTime(f.Now).Rfc3339Copy()}
	default:
		return nil
	}
}

// advance takes one step if nothing prevents it.
func (d *Decision) advance(f Facts) bool {
	u := d.Upgrade
	switch u.Step {
	case ControlPlane:
		if !f.ControlPlaneDone {
			return false
		}
		u.enter(BeforeWorkers, f.Now)
		return true
	case Workers:
		if !f.WorkersDone {
			return false
		}
		u.enter(AfterWorkers, f.Now)
		return true
	}
	unready := notReady(f.AddOns, addonsv1.UpgradeStage(u.Step))
	if len(unready) > 0 && f.Skip != u.To && f.Skip != minor(u.To) {
		d.Waiting = unready
		return false
	}
	d.Skipped = append(d.Skipped, unready...)
	switch u.Step {
	case BeforeControlPlane:
		u.enter(ControlPlane, f.Now)
	case BeforeWorkers:
		u.enter(Workers, f.Now)
	default:
		d.Upgrade = nil
	}
	return d.Upgrade != nil
}

func notReady(all []AddOn, stage addonsv1.UpgradeStage) []AddOn {
	var out []AddOn
	for _, a := range all {
		if a.Stage == stage && a.Problem != "" {
			out = append(out, a)
		}
	}
	return out
}

// Message describes what an upgrade waits for.
func (d Decision) Message() string {
	u := d.Upgrade
	switch u.Step {
	case ControlPlane:
		return "The control plane is upgraded to Kubernetes " + u.To
	case Workers:
		return "Workers are upgraded to Kubernetes " + u.To
	}
	before := map[Step]string{
		BeforeControlPlane: "before the control plane is upgraded to Kubernetes " + u.To,
		BeforeWorkers:      "before workers are upgraded to Kubernetes " + u.To,
		AfterWorkers:       "after the upgrade to Kubernetes " + u.To,
	}[u.Step]
	out := fmt.Sprintf("Waiting for add-ons %s: %s", before, Describe(d.Waiting))
	if d.TimedOut {
		out += fmt.Sprintf("; this takes too long, and annotation %s: %q continues without them", anywherev1.SkipAddOnWaitAnnotation, minor(u.To))
	}
	return text.Truncate(out)
}

// Timeout returns the timeout that a Cluster sets, or the default.
func Timeout(c *anywherev1.Cluster) time.Duration {
	d, err := ParseTimeout(c.Annotations[anywherev1.AddOnWaitTimeoutAnnotation])
	if err != nil {
		return DefaultTimeout
	}
	return d
}

// ParseTimeout parses a timeout. Without one, it is the default.
func ParseTimeout(value string) (time.Duration, error) {
	if value == "" {
		return DefaultTimeout, nil
	}
	d, err := time.ParseDuration(value)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not positive", value)
	}
	return d, err
}
