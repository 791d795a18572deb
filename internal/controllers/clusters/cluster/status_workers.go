package cluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/inplace"
)

// tally counts the workers of all groups.
type tally struct{ wanted, actual, current, ready int32 }

func count(f facts) tally {
	t := tally{}
	t.actual, t.current = existingWorkers(f)
	seen := map[string]bool{}
	for _, d := range f.workers {
		seen[d.Name] = true
		if groupOf(f.cluster, d) != nil {
			t.wanted += ptr.Deref(d.Spec.Replicas, 1)
		}
		t.ready += ptr.Deref(d.Status.ReadyReplicas, 0)
	}
	for _, g := range f.cluster.Spec.WorkerNodeGroupConfigurations {
		if !seen[build.WorkersName(f.cluster.Name, g.Name)] {
			t.wanted += int32(ptr.Deref(g.Count, 1))
		}
	}
	return t
}

// existingWorkers counts machines, and those that match the current spec of their group.
// MachineDeployments don't count machines that are being deleted, and count outdated machines as up
// to date for a moment after a change.
func existingWorkers(f facts) (actual, current int32) {
	wanted, made := map[string]build.Machinery{}, map[string]build.Machinery{}
	for _, d := range f.workers {
		wanted[d.Name] = build.MachineryOf(d.Spec.Template.Spec)
	}
	for _, set := range f.sets {
		made[set.Name] = build.MachineryOf(set.Spec.Template.Spec)
	}
	for _, m := range f.machines {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			continue
		}
		actual++
		from, ok := made[m.Labels[clusterv1.MachineSetNameLabel]]
		if ok && from == wanted[m.Labels[clusterv1.MachineDeploymentNameLabel]] {
			current++
		}
	}
	return actual, current
}

func workersCount(f facts) string {
	t := count(f)
	return fmt.Sprintf("%d/%d", t.ready, t.wanted)
}

// workersReady checks all groups together, in the order in which problems resolve.
func workersReady(f facts) verdict {
	if initialized(f).status != metav1.ConditionTrue {
		return no(anywherev1.ControlPlaneNotInitializedReason, "%s", anywherev1.FirstControlPlaneUnavailableMessage)
	}
	if waiting := waitsForAddOns(f); waiting != nil && len(f.held) > 0 {
		return *waiting
	}
	if len(f.held) > 0 {
		return no(anywherev1.ControlPlaneNotReadyReason, "%s", anywherev1.ControlPlaneNotReadyMessage)
	}
	for _, d := range f.workers {
		if d.Status.ObservedGeneration != d.Generation {
			return no(anywherev1.OutdatedInformationReason, anywherev1.MachineDeploymentNotReadyMessage, d.Name)
		}
	}
	t := count(f)
	switch {
	case (t.current < t.actual || workersUpdating(f)) && inPlaceWorkers(f):
		return upgradingInPlace(f, fmt.Sprintf(anywherev1.WorkersOutdatedMessage, t.actual-t.current, t.current), func(m *clusterv1.Machine) bool { return !isControlPlane(m) })
	case t.current < t.actual && t.current < t.wanted:
		return no(anywherev1.RollingUpgradeInProgressReason, anywherev1.WorkersOutdatedMessage, t.actual-t.current, t.current)
	case t.actual < t.wanted:
		return no(anywherev1.ScalingUpReason, anywherev1.WorkersScalingUpMessage, t.wanted, t.actual)
	case t.actual > t.wanted:
		return no(anywherev1.ScalingDownReason, anywherev1.WorkersScalingDownMessage, t.wanted, t.actual)
	case t.ready != t.wanted:
		return no(anywherev1.NodesNotReadyReason, anywherev1.WorkersNotReadyMessage, t.wanted, t.ready)
	}
	return groupsReady(f)
}

// workersUpdating reports whether a worker is being upgraded in place.
func workersUpdating(f facts) bool {
	return slices.ContainsFunc(f.machines, func(m *clusterv1.Machine) bool { return !isControlPlane(m) && isUpdating(m) })
}

// inPlaceWorkers reports whether a group is upgraded in place.
func inPlaceWorkers(f facts) bool {
	return slices.ContainsFunc(f.workers, func(d *clusterv1.MachineDeployment) bool { return inplace.Wanted(d.Spec.Template.Annotations) })
}

// groupsReady checks each group.
func groupsReady(f facts) verdict {
	for _, d := range f.workers {
		g := groupOf(f.cluster, d)
		if g == nil {
			return no(anywherev1.ScalingDownReason, "Worker group %s is being deleted", d.Name)
		}
		if bounds := g.AutoScalingConfiguration; bounds != nil {
			if n := int(ptr.Deref(d.Status.Replicas, 0)); n < bounds.MinCount || n > bounds.MaxCount {
				return no(anywherev1.AutoscalerConstraintNotMetReason, anywherev1.AutoscalerConstraintNotMetMessage, g.Name, bounds.MinCount, bounds.MaxCount, n)
			}
		}
		if !meta.IsStatusConditionTrue(d.Status.Conditions, clusterv1.MachineDeploymentAvailableCondition) {
			return no(anywherev1.MachineDeploymentNotReadyReason, anywherev1.MachineDeploymentNotReadyMessage, d.Name)
		}
	}
	return yes(anywherev1.ReadyReason)
}
