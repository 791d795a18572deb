package kubetest

import (
	"context"
	"sync"
	"testing"
)

// Servers are further API servers, such as those of workload clusters, that all tests of a package
// share. TestMain must call Stop.
type Servers struct {
	once sync.Once
	all  []*Server
	err  error
}

// Start starts n servers when the first test calls it.
func (s *Servers) Start(t testing.TB, n int) {
	t.Helper()
	s.once.Do(func() {
		for range n {
			server, err := Run(context.Background())
			if err != nil {
				s.err = err
				return
			}
			s.all = append(s.all, server)
		}
	})
	if s.err != nil {
		t.Fatalf("starting API servers: %v", s.err)
	}
}

// All returns the servers that were started.
func (s *Servers) All() []*Server { return s.all }

// Stop stops the servers.
func (s *Servers) Stop() {
	for _, server := range s.all {
		server.Stop()
	}
}
