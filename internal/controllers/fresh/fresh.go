// Package fresh tells a cache that is behind what its own controller has written from one that is not: to decide on old facts would do
// things twice, or end in a conflict. It asks nobody. Start with Writes.
package fresh

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Retry is when a cache that was behind is looked at again. Most are not behind for long; a busy API server may keep them waiting.
const Retry = 100 * time.Millisecond

// Writes are the versions of objects of one kind that a controller wrote last. The zero value has none.
type Writes struct {
	mu   sync.Mutex
	last map[client.ObjectKey]string
}

// Note remembers a version, as an API server has answered with it.
func (w *Writes) Note(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[client.ObjectKey]string{}
	}
	w.last[client.ObjectKeyFromObject(o)] = o.GetResourceVersion()
}

// Stale says that a cache has not told yet what was written.
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

// Wrote says that a version is the one that was written last: that it is there is no news to who wrote it.
func (w *Writes) Wrote(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.GetResourceVersion() != "" && w.last[client.ObjectKeyFromObject(o)] == o.GetResourceVersion()
}

// Forget is for an object that is gone.
func (w *Writes) Forget(key client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, key)
}
