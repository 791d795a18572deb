package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestLastOperationIsTheLastChange(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(minute) * time.Minute)) }
	met := func(kind string, minute int) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: at(minute)}
	}
	machine := func(name string, created int, conditions ...metav1.Condition) *Node {
		return &Node{Kind: kindMachine, Name: name, Created: at(created), Conditions: conditions}
	}
	root := func(machines ...*Node) *Node {
		return &Node{
			Kind: kindCluster, Name: "one", Created: at(0), Children: machines,
			Conditions: []metav1.Condition{met(anywherev1.ControlPlaneInitialized, 2), met(anywherev1.ControlPlaneReady, 3), met(anywherev1.Ready, 58)},
		}
	}
	old := machine("old", 1, met(clusterv1.ReadyCondition, 2), met(clusterv1.MachineUpToDateCondition, 2))
	many := []*Node{old}
	for i := range maxMachineStages + 3 {
		many = append(many, machine(fmt.Sprintf("m%d", i), 51, met(clusterv1.ReadyCondition, 52)))
	}
	for name, tt := range map[string]struct {
		root    *Node
		changed metav1.Time
		want    string
		hidden  int
	}{
		"an unknown change":            {root(old), metav1.Time{}, "creation: created 0s, API server available 2m0s, control plane ready 1m0s, ready 55m0s", 0},
		"a change before any machine":  {root(old), at(0), "creation: created 0s, API server available 2m0s, control plane ready 1m0s, ready 55m0s", 0},
		"a change that replaced":       {root(old, machine("new", 51, met(clusterv1.ReadyCondition, 53))), at(50), "change: spec changed 0s, new machine new 2m0s, ready 5m0s", 0},
		"a machine that is not ready":  {root(old, machine("new", 51)), at(50), "change: spec changed 0s, ready 8m0s", 0},
		"a change in place":            {root(machine("old", 1, met(clusterv1.MachineUpToDateCondition, 55))), at(50), "change: spec changed 0s, updated machine old 5m0s, ready 3m0s", 0},
		"a change without any effect":  {root(old), at(59), "change: spec changed 0s", 0},
		"many machines are not listed": {root(many...), at(50), "change: spec changed 0s" + strings.Repeat(", new machine 1m0s", maxMachineStages) + ", ready 6m0s", 3},
	} {
		t.Run(name, func(t *testing.T) {
			got := LastOperation(tt.root, tt.changed)
			var stages []string
			for _, s := range got.Stages {
				what := s.Name
				if tt.hidden > 0 && strings.HasPrefix(what, "new machine ") {
					what = "new machine"
				}
				stages = append(stages, fmt.Sprintf("%s %s", what, time.Duration(s.Seconds*1e9)))
			}
			if diff := cmp.Diff(tt.want, got.Name+": "+strings.Join(stages, ", ")); diff != "" || got.Hidden != tt.hidden {
				t.Errorf("%d hidden (-want +got):\n%s", got.Hidden, diff)
			}
		})
	}
}

func TestSpecChangedIgnoresStatus(t *testing.T) {
	entry := func(minute int, subresource, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(epoch.Add(time.Duration(minute) * time.Minute))
		return metav1.ManagedFieldsEntry{Time: &at, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	c := &anywherev1.Cluster{}
	if got := SpecChanged(c); !got.IsZero() {
		t.Errorf("without managed fields the spec was changed at %s", got)
	}
	c.ManagedFields = []metav1.ManagedFieldsEntry{
		entry(1, "", `{"f:spec":{"f:kubernetesVersion":{}}}`), entry(5, "scale", `{"f:spec":{"f:replicas":{}}}`), entry(7, "", `{"f:metadata":{"f:finalizers":{}}}`), entry(9, "status", `{"f:status":{}}`), {},
	}
	if got := SpecChanged(c); !got.Time.Equal(epoch.Add(5 * time.Minute)) {
		t.Errorf("the spec was changed at %s, want the fifth minute", got)
	}
}
