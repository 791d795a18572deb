// Package lockstep keeps add-ons in step with the Kubernetes version of their cluster: it says
// which add-ons an upgrade waits for, and which version each of them sees until then. It consists
// of pure functions, so that controllers act on what commands show.
//
//	BeforeControlPlane ──▶ ControlPlane ──▶ BeforeWorkers ──▶ Workers ──▶ AfterWorkers ──▶ done
//	 waits for add-ons      waits for        waits for         waits for   waits for
//	 of that stage          machines         add-ons           machines    add-ons
//
// An upgrade in progress is recorded on the Cluster of Cluster API, where the controllers of
// add-ons read it. Start with Decide, which moves through the steps, and StageOf, which says to
// which of them an add-on belongs.
package lockstep

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Step is how far an upgrade is.
type Step string

// Steps of an upgrade, in order. Those with the name of a stage wait for the add-ons of that stage.
const (
	BeforeControlPlane Step = Step(addonsv1.BeforeControlPlane)
	ControlPlane       Step = "ControlPlane"
	BeforeWorkers      Step = Step(addonsv1.BeforeWorkers)
	Workers            Step = "Workers"
	AfterWorkers       Step = Step(addonsv1.AfterWorkers)
)

var steps = []Step{BeforeControlPlane, ControlPlane, BeforeWorkers, Workers, AfterWorkers}

// Stages are the stages of add-ons, in order.
var Stages = []addonsv1.UpgradeStage{addonsv1.BeforeControlPlane, addonsv1.BeforeWorkers, addonsv1.AfterWorkers}

// Upgrade is a Kubernetes upgrade in progress.
type Upgrade struct {
	// From and To are versions such as v1.36.3.
	From string `json:"from"`
	To   string `json:"to"`
	Step Step   `json:"step"`
	// Since is when the step began.
	Since metav1.Time `json:"since"`
}

// Of returns the upgrade in progress of a Cluster of Cluster API, or nil. Whoever may write the
// Cluster may also break the annotation, so that one which can't be read is none.
func Of(cluster metav1.Object) *Upgrade {
	text, ok := cluster.GetAnnotations()[addonsv1.KubernetesUpgradeAnnotation]
	if !ok {
		return nil
	}
	u := &Upgrade{}
	if json.Unmarshal([]byte(text), u) != nil || !slices.Contains(steps, u.Step) || !valid(u.From) || !valid(u.To) {
		return nil
	}
	return u
}

// String returns the value of the annotation.
func (u *Upgrade) String() string {
	text, err := json.Marshal(u)
	if err != nil {
		panic(fmt.Sprintf("encoding an upgrade: %v", err)) // it has strings and a time only
	}
	return string(text)
}

// Version returns the Kubernetes version that an add-on of a stage is rendered for, or an empty
// string if that is the one of the cluster.
func (u *Upgrade) Version(stage addonsv1.UpgradeStage) string {
	switch {
	case u == nil || !slices.Contains(Stages, stage):
		return ""
	case u.reached(Step(stage)):
		return u.To
	default:
		return u.From
	}
}

// reached reports whether the upgrade has reached a step.
func (u *Upgrade) reached(s Step) bool { return slices.Index(steps, u.Step) >= slices.Index(steps, s) }

// enter moves to a step.
func (u *Upgrade) enter(s Step, now time.Time) {
	u.Step, u.Since = s, metav1.NewTime(now).Rfc3339Copy()
}
