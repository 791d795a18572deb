package client

import (
	"sync"
	"time"
)

// refusedPause is how long a token that was refused is not tried again. Another token has another
// client, so that a rotated one is used at once.
const refusedPause = time.Minute

// gate keeps all requests of a client back after the API has turned one away for a reason that is
// the token's: the machines of a fleet would otherwise find out one by one, and each time make it
// worse.
type gate struct {
	mu     sync.Mutex
	until  time.Time
	reason Error
}

// closed returns what every request would meet now, or nil.
func (g *gate) closed(now time.Time) *Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !now.Before(g.until) {
		return nil
	}
	e := g.reason
	if e.Kind == RateLimited {
		e.After = g.until.Sub(now)
	}
	return &e
}

func (g *gate) close(now time.Time, e *Error) {
	pause := e.After
	switch e.Kind {
	case RateLimited:
	case Unauthorized:
		pause = refusedPause
	default:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(pause); until.After(g.until) {
		g.until, g.reason = until, *e
	}
}
