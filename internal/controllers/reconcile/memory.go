package reconcile

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory holds what a controller knows about objects beyond their status, by key. It is lost on a
// restart, so everything in it must be observable again. The zero value is empty, and it is safe
// for concurrent use.
type Memory[T any] struct {
	mu    sync.Mutex
	known map[client.ObjectKey]*T
}

// Get returns a copy of what is known, or the zero value.
func (m *Memory[T]) Get(key client.ObjectKey) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.known[key]; found != nil {
		return *found
	}
	var none T
	return none
}

// Update changes what is known, starting with the zero value.
func (m *Memory[T]) Update(key client.ObjectKey, change func(*T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[client.ObjectKey]*T{}
	}
	if m.known[key] == nil {
		m.known[key] = new(T)
	}
	change(m.known[key])
}

// UpdateKnown changes what is known, and does nothing for an object that nothing is known about.
func (m *Memory[T]) UpdateKnown(key client.ObjectKey, change func(*T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.known[key]; found != nil {
		change(found)
	}
}

// Forget removes what is known about an object.
func (m *Memory[T]) Forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

// Keys returns the objects that match.
func (m *Memory[T]) Keys(match func(*T) bool) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []client.ObjectKey
	for key, found := range m.known {
		if match(found) {
			out = append(out, key)
		}
	}
	return out
}
