package inspect

import (
	"bytes"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Names of operations.
const (
	Creation = "creation"
	Change   = "change"
)

// maxMachineStages bounds how many machines an operation lists.
const maxMachineStages = 20

// Operation is the creation of a cluster or the last change of its spec.
type Operation struct {
	Name string `json:"name"`
	// Stages are those that it has gone through, oldest first. The first one is its beginning.
	Stages []Stage `json:"stages"`
	// Hidden is how many machines are left out, because there are too many.
	Hidden int `json:"hidden,omitempty"`
}

// SpecChanged returns when somebody last wrote the spec of an object, or zero if that is not known.
func SpecChanged(o metav1.Object) metav1.Time {
	var last metav1.Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(last.Time) && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			last = *f.Time
		}
	}
	return last
}

// finished are the conditions of a Cluster that end a stage of a change.
var finished = []struct{ condition, name string }{
	{anywherev1.DefaultCNIConfigured, "network installed"},
	{anywherev1.EtcdReady, "etcd ready"},
	{anywherev1.ControlPlaneReady, "control plane ready"},
	{anywherev1.WorkersReady, "workers ready"},
	{anywherev1.KubernetesUpgraded, "Kubernetes upgraded"},
	{anywherev1.Ready, "ready"},
}

// LastOperation returns what happened since the spec was changed, or since the creation if no
// machine is older than that change.
func LastOperation(root *Node, changed metav1.Time) Operation {
	var machines []*Node
	root.Walk(func(n *Node, _ int) {
		if n.Kind == kindMachine {
			machines = append(machines, n)
		}
	})
	older := slices.ContainsFunc(machines, func(m *Node) bool { return m.Created.Before(&changed) })
	if changed.IsZero() || !older {
		return Operation{Name: Creation, Stages: stages(root)}
	}
	out := Operation{Name: Change, Stages: []Stage{{Name: "spec changed", At: changed}}}
	for _, m := range machines {
		out.Stages = append(out.Stages, m.stagesAfter(changed)...)
	}
	out.Hidden = max(0, len(out.Stages)-1-maxMachineStages)
	sortStages(out.Stages)
	out.Stages = slices.Delete(out.Stages, 1, 1+out.Hidden)
	for _, f := range finished {
		c := apimeta.FindStatusCondition(root.Conditions, f.condition)
		if c != nil && c.Status == metav1.ConditionTrue && c.LastTransitionTime.After(changed.Time) {
			out.Stages = append(out.Stages, Stage{Name: f.name, At: c.LastTransitionTime})
		}
	}
	sortStages(out.Stages)
	for i := 1; i < len(out.Stages); i++ {
		s := &out.Stages[i]
		begin := out.Stages[i-1].At
		if !s.Begin.IsZero() {
			begin = s.Begin
		}
		s.Seconds = s.At.Sub(begin.Time).Seconds()
	}
	return out
}

func sortStages(all []Stage) {
	slices.SortStableFunc(all, func(a, b Stage) int { return a.At.Compare(b.At.Time) })
}

// stagesAfter returns the stages of a machine that was created or updated in place after a time.
func (n *Node) stagesAfter(changed metav1.Time) []Stage {
	after := func(condition string) *metav1.Condition {
		c := apimeta.FindStatusCondition(n.Conditions, condition)
		if c == nil || c.Status != metav1.ConditionTrue || !c.LastTransitionTime.After(changed.Time) {
			return nil
		}
		return c
	}
	if n.Created.After(changed.Time) {
		if c := after(clusterv1.ReadyCondition); c != nil {
			return []Stage{{Name: "new machine " + n.Name, Begin: n.Created, At: c.LastTransitionTime}}
		}
		return nil
	}
	if c := after(clusterv1.MachineUpToDateCondition); c != nil {
		return []Stage{{Name: "updated machine " + n.Name, At: c.LastTransitionTime}}
	}
	return nil
}
