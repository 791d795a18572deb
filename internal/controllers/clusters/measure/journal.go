package measure

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// weight is how much an operation explains: an upgrade adds and removes machines, and both have nodes that are not ready for a while.
var weight = []Operation{Repair, Scale, Upgrade}

// Journal remembers why Clusters are not Ready. The last reason before they are is not the telling one: an upgrade ends with old machines
// being removed, which would be a change of their number. A process that begins in the middle of an operation knows its end only, and goes by
// that.
type Journal struct {
	mu sync.Mutex
	of map[client.ObjectKey]Operation
}

// Ended are the stages that ended with a change of a Cluster's status, by what they were a part of.
func (j *Journal) Ended(before, after *anywherev1.Cluster) []Stage {
	ended := Ended(before, after)
	if before.Status.ReconciledGeneration == 0 {
		return ended // All of that is its creation.
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	key := client.ObjectKeyFromObject(after)
	why := j.of[key]
	for _, s := range ended {
		why = heavier(why, s.Operation)
	}
	for i := range after.Status.Conditions {
		c := &after.Status.Conditions[i]
		if _, known := stages[c.Type]; known && c.Status != metav1.ConditionTrue {
			why = heavier(why, operation(after, c))
		}
	}
	for i := range ended {
		if ended[i].Operation != Create {
			ended[i].Operation = heavier(why, ended[i].Operation)
		}
	}
	j.note(key, why, meta.IsStatusConditionTrue(after.Status.Conditions, anywherev1.Ready))
	return ended
}

func (j *Journal) note(key client.ObjectKey, why Operation, over bool) { //nolint:revive // a fact, not a switch
	if j.of == nil {
		j.of = map[client.ObjectKey]Operation{}
	}
	if j.of[key] = why; over || why == "" {
		delete(j.of, key)
	}
}

// Forget is for a Cluster that is gone.
func (j *Journal) Forget(key client.ObjectKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.of, key)
}

func heavier(a, b Operation) Operation {
	if slices.Index(weight, a) > slices.Index(weight, b) {
		return a
	}
	return b
}
