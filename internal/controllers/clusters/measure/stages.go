// Package measure counts Clusters by phase and measures the stages of operations: as metrics, whose
// number does not grow with the fleet, and as spans of the trace that a command started.
//
// A stage is the time during which a condition was not True, which the status of a Cluster
// contains; Journal remembers only the operation. Start with Reporter.
package measure

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Operation is an operation on a Cluster.
type Operation string

// Operations.
const (
	Create  Operation = "create"
	Upgrade Operation = "upgrade"
	Scale   Operation = "scale"
	Repair  Operation = "repair" // no user requested it: something broke
	Delete  Operation = "delete"
)

// stages maps the conditions that end stages to their names.
var stages = map[string]string{
	anywherev1.EtcdReady:               "etcd",
	anywherev1.ControlPlaneInitialized: "control-plane-initialized",
	anywherev1.ControlPlaneReady:       "control-plane",
	anywherev1.DefaultCNIConfigured:    "network",
	anywherev1.WorkersReady:            "workers",
	anywherev1.KubernetesUpgraded:      "kubernetes",
	anywherev1.Ready:                   Total,
}

// Total is the stage that spans a whole operation.
const Total = "total"

// Stage is a finished part of an operation.
type Stage struct {
	Operation  Operation
	Name       string
	Start, End time.Time
}

// Ended returns the stages that ended between two states of a Cluster, earliest first.
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

// operation returns why a condition was not True.
func operation(before *anywherev1.Cluster, was *metav1.Condition) Operation {
	if before.Status.ReconciledGeneration == 0 || was == nil {
		return Create
	}
	switch was.Reason {
	case anywherev1.RollingUpgradeInProgressReason, anywherev1.InPlaceUpgradeInProgressReason, anywherev1.DefaultCNIUpgradeInProgressReason,
		anywherev1.WaitingForAddOnsReason, anywherev1.AddOnsTimedOutReason:
		return Upgrade
	case anywherev1.ScalingUpReason, anywherev1.ScalingDownReason, anywherev1.AutoscalerConstraintNotMetReason:
		return Scale
	default:
		return Repair
	}
}

// Gone returns the stage of a deletion.
func Gone(c *anywherev1.Cluster, now time.Time) Stage {
	return Stage{Operation: Delete, Name: Total, Start: c.DeletionTimestamp.Time, End: now}
}

// Phases lists all phases of a Cluster.
var Phases = []string{"Creating", "Deleting", "Failed", "NotReady", "Paused", "Ready", "Scaling", "Upgrading", "Waiting"}

// Phase returns the phase of a Cluster.
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
	case meta.IsStatusConditionFalse(c.Status.Conditions, anywherev1.CapacityReserved):
		return "Waiting"
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
