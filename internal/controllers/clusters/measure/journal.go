package measure

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// weight orders operations by how much they explain: an upgrade adds and removes machines, whose
// nodes are not ready for a while.
var weight = []Operation{Repair, Scale, Upgrade}

// Journal remembers why Clusters are not ready. The last reason is not sufficient: an upgrade ends
// with the deletion of old machines, which looks like scaling. After a restart during an operation,
// only the last reason is known.
type Journal struct {
	mu sync.Mutex
	of map[client.ObjectKey]Operation
}

// Ended returns the stages that ended with a change of the status, with their operation.
func (j *Journal) Ended(before, after *anywherev1.Cluster) []Stage {
	ended := Ended(before, after)
	if before.Status.ReconciledGeneration == 0 {
		return ended // They are part of the creation.
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	key := client.ObjectKeyFromObject(after)
	why := j.of[key]
	for _, s := range ended {
		why = moreSignificant(why, s.Operation)
	}
	for i := range after.Status.Conditions {
		c := &after.Status.Conditions[i]
		if _, known := stages[c.Type]; known && c.Status != metav1.ConditionTrue {
			why = moreSignificant(why, operation(after, c))
		}
	}
	for i := range ended {
		if ended[i].Operation != Create {
			ended[i].Operation = moreSignificant(why, ended[i].Operation)
		}
	}
	if meta.IsStatusConditionTrue(after.Status.Conditions, anywherev1.Ready) {
		why = "" // The operation is over.
	}
	j.note(key, why)
	return ended
}

// note remembers the operation of a Cluster, or forgets it if it is empty.
func (j *Journal) note(key client.ObjectKey, why Operation) {
	if j.of == nil {
		j.of = map[client.ObjectKey]Operation{}
	}
	if j.of[key] = why; why == "" {
		delete(j.of, key)
	}
}

// Forget removes a deleted Cluster.
func (j *Journal) Forget(key client.ObjectKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.of, key)
}

func moreSignificant(a, b Operation) Operation {
	if slices.Index(weight, a) > slices.Index(weight, b) {
		return a
	}
	return b
}
