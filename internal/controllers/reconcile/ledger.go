package reconcile

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// write is a change that informers have yet to see.
type write struct {
	resource schema.GroupResource
	key      string
	// version is what the object has become; empty if it is gone.
	version string
	// uid is that of an object that is gone.
	uid types.UID
	// lost marks a request without an answer. It counts as unseen until its effect is known.
	lost *lostWrite
}

// same reports whether a later write replaces an earlier one.
func (w write) same(other write) bool {
	return w.lost == nil && other.lost == nil && w.resource == other.resource && w.key == other.key
}

// ledger has the unseen writes of one controller, by the request that made them.
type ledger struct {
	mu     sync.Mutex
	unseen map[ctrlreconcile.Request][]write
	// holding has the requests that are held back now.
	holding map[ctrlreconcile.Request]bool
}

func newLedger() *ledger {
	return &ledger{unseen: map[ctrlreconcile.Request][]write{}, holding: map[ctrlreconcile.Request]bool{}}
}

// note adds a write.
func (l *ledger) note(by ctrlreconcile.Request, w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unseen[by] = append(slices.DeleteFunc(l.unseen[by], w.same), w)
}

// replace puts what is known of the effect of a lost write in its place.
func (l *ledger) replace(by ctrlreconcile.Request, lost *lostWrite, with []write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := slices.DeleteFunc(l.unseen[by], func(w write) bool { return w.lost == lost })
	l.unseen[by] = append(rest, with...)
}

// seen reports whether all informers have seen what a request wrote.
func (l *ledger) seen(by ctrlreconcile.Request, t *tracker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := slices.DeleteFunc(l.unseen[by], func(w write) bool {
		return w.lost == nil && !w.missingFrom(t.groups(w.resource))
	})
	if len(rest) > 0 {
		l.unseen[by] = rest
		return false
	}
	delete(l.unseen, by)
	delete(l.holding, by)
	return true
}

// startHolding reports whether a request was not held back before.
func (l *ledger) startHolding(by ctrlreconcile.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	already := l.holding[by]
	l.holding[by] = true
	return !already
}

// wrote reports whether a version of an object is among the unseen writes.
func (l *ledger) wrote(key, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, writes := range l.unseen {
		if slices.ContainsFunc(writes, func(w write) bool { return w.key == key && w.version == version }) {
			return true
		}
	}
	return false
}

// missingFrom reports whether informers of some form have yet to see the change. Of a group with
// one informer for each namespace, only one ever has the object.
func (w write) missingFrom(groups map[reflect.Type][]toolscache.SharedIndexInformer) bool {
	for _, group := range groups {
		holder := slices.IndexFunc(group, func(informer toolscache.SharedIndexInformer) bool {
			_, exists, err := informer.GetStore().GetByKey(w.key)
			return err == nil && exists
		})
		if holder >= 0 {
			group = group[holder : holder+1]
		}
		if slices.ContainsFunc(group, w.missing) {
			return true
		}
	}
	return false
}

// missing reports whether an informer has yet to see the change.
func (w write) missing(informer toolscache.SharedIndexInformer) bool {
	if informer.IsStopped() || !informer.HasSynced() {
		return false
	}
	found, exists, err := informer.GetStore().GetByKey(w.key)
	if err != nil {
		return false
	}
	if !exists {
		return w.version != "" && !reached(informer.GetStore().LastStoreSyncResourceVersion(), w.version)
	}
	object, err := meta.Accessor(found)
	if err != nil {
		return false
	}
	if w.version == "" {
		return object.GetUID() == w.uid
	}
	return !reached(object.GetResourceVersion(), w.version)
}

// reached reports whether a version is at least the wanted one. Versions that don't compare are not
// waited for.
func reached(version, wanted string) bool {
	if version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, wanted)
	return err != nil || order >= 0
}
