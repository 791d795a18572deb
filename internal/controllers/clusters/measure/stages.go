// Package measure tells how many Clusters are in which phase, and how long each stage of making, changing and deleting one took: as metrics,
// whose number does not depend on that of clusters, and as spans of the trace that a command began.
//
// Little is remembered for it (Journal). A stage is the time in which a condition was not True, and a Cluster's own status says since when that was.
package measure

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Operation is what is being done to a Cluster.
type Operation string

// Operations.
const (
	Create  Operation = "create"
	Upgrade Operation = "upgrade"
	Scale   Operation = "scale"
	Repair  Operation = "repair" // nobody asked for it: something broke
	Delete  Operation = "delete"
)

// stages are the names of stages, by the condition that ends them.
var stages = map[string]string{
	anywherev1.ControlPlaneInitialized: "control-plane-initialized",
	anywherev1.ControlPlaneReady:       "control-plane",
	anywherev1.DefaultCNIConfigured:    "network",
	anywherev1.WorkersReady:            "workers",
	anywherev1.Ready:                   Total,
}

// Total is the name of the stage that is a whole operation.
const Total = "total"

// Stage is a part of an operation that came to its end.
type Stage struct {
	Operation  Operation
	Name       string
	Start, End time.Time
}

// Ended are the stages that were under way before and are at their end after, the earliest first.
func Ended(before, after *anywherev1.Cluster) []Stage {
	var out []Stage
	for _, c := range after.Status.Conditions {
		name, known := stages[c.Type]
		was := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if !known || c.Status != metav1.ConditionTrue || was != nil && was.Status == metav1.ConditionTrue {
			continue
		}
		s := Stage{Operation: operation(before, was), Name: name, Start: after.CreationTimestamp.Time, End: c.LastTransitionTime.Time}
		if s.Operation != Create {
			s.Start = was.LastTransitionTime.Time
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Stage) int { return a.End.Compare(b.End) })
	return out
}

// operation is what kept a condition from being True.
func operation(before *anywherev1.Cluster, was *metav1.Condition) Operation {
	if before.Status.ReconciledGeneration == 0 || was == nil {
		return Create
	}
	switch was.Reason {
	case anywherev1.RollingUpgradeInProgressReason, anywherev1.DefaultCNIUpgradeInProgressReason:
		return Upgrade
	case anywherev1.ScalingUpReason, anywherev1.ScalingDownReason, anywherev1.AutoscalerConstraintNotMetReason:
		return Scale
	default:
		return Repair
	}
}

// Gone is the stage that ends when a Cluster that was deleted is no more.
func Gone(c *anywherev1.Cluster, now time.Time) Stage {
	return Stage{Operation: Delete, Name: Total, Start: c.DeletionTimestamp.Time, End: now}
}

// Phases are all that a Cluster can be in.
var Phases = []string{"Creating", "Deleting", "Failed", "NotReady", "Paused", "Ready", "Scaling", "Upgrading"}

// Phase is the one word about a Cluster.
func Phase(c *anywherev1.Cluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, anywherev1.Ready)
	switch {
	case !c.DeletionTimestamp.IsZero():
		return "Deleting"
	case c.IsPaused():
		return "Paused"
	case c.Status.FailureReason != nil:
		return "Failed"
	case ready != nil && ready.Status == metav1.ConditionTrue && c.Status.ObservedGeneration == c.Generation:
		return "Ready"
	case c.Status.ReconciledGeneration == 0:
		return "Creating"
	case ready == nil:
		return "NotReady"
	}
	switch operation(c, ready) {
	case Upgrade:
		return "Upgrading"
	case Scale:
		return "Scaling"
	default:
		return "NotReady"
	}
}
