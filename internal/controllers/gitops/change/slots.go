package change

import (
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
)

// slots let one reconcile at a time use a repository. Those that come too late are remembered, and
// are reconciled again when it is their turn: nobody waits in a worker.
type slots struct {
	// wake is called for each request that came too late; nil if nobody listens.
	wake func(ctrl.Request)

	mu sync.Mutex
	// waiting has an entry for each repository in use.
	waiting map[string][]ctrl.Request
}

// acquire reports whether a repository was free. If so, the caller must release it.
func (s *slots) acquire(repository string, request ctrl.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting, used := s.waiting[repository]; used {
		s.waiting[repository] = append(waiting, request)
		return false
	}
	if s.waiting == nil {
		s.waiting = map[string][]ctrl.Request{}
	}
	s.waiting[repository] = nil
	return true
}

// release frees a repository, and wakes all who waited for it.
func (s *slots) release(repository string) {
	s.mu.Lock()
	waiting := s.waiting[repository]
	delete(s.waiting, repository)
	s.mu.Unlock()
	if s.wake == nil {
		return
	}
	for _, request := range waiting {
		s.wake(request)
	}
}
