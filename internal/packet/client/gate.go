package client

import (
	"sync"
	"time"
)

// gate keeps all requests of a client back after the API has asked for it: the limit is the token's, so that the machines of a fleet
// would otherwise find out one by one, and each time make it worse.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

func (g *gate) closedFor(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until.Sub(now)
}

func (g *gate) close(now time.Time, e *Error) {
	if e.Kind != RateLimited {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(e.After); until.After(g.until) {
		g.until = until
	}
}
