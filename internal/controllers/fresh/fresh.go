// Package fresh detects a cache that lacks the writes of its own controller: acting on stale data
// would repeat work or end in a conflict. It makes no requests. Start with Writes.
package fresh

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Retry is when to reconcile again after a stale read. Most caches catch up soon; a busy API server
// may delay them.
const Retry = 100 * time.Millisecond

// Writes records the last written versions of objects of one kind. The zero value is empty.
type Writes struct {
	mu   sync.Mutex
	last map[client.ObjectKey]string
}

// Note records a version that an API server returned.
func (w *Writes) Note(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[client.ObjectKey]string{}
	}
	w.last[client.ObjectKeyFromObject(o)] = o.GetResourceVersion()
}

// Stale reports whether a cached object is older than the last write.
func (w *Writes) Stale(cached client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	last, ok := w.last[key]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last)
	if err != nil || order >= 0 {
		delete(w.last, key)
		return false
	}
	return true
}

// Wrote reports whether a version is the one that was written last, so that its event is no news to
// the writer.
func (w *Writes) Wrote(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.GetResourceVersion() != "" && w.last[client.ObjectKeyFromObject(o)] == o.GetResourceVersion()
}

// Forget drops a deleted object.
func (w *Writes) Forget(key client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, key)
}
