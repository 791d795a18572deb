package client

import (
	"sync"
	"time"
)

// refusedPause is how long a rejected token is not tried again. Another token has its own client,
// so a rotated token is used at once.
const refusedPause = time.Minute

// gate blocks all requests of a client after the API has rejected its token or limited its rate.
// Otherwise every machine of a fleet would find out with a request of its own and make it worse.
type gate struct {
	mu     sync.Mutex
	until  time.Time
	reason Error
}

// closed returns the error that every request would get now, or nil.
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
