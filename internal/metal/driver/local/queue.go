package local

import "context"

// turn is a position in the queue of one machine. Work runs in the order in which it was queued.
type turn struct {
	before <-chan struct{}
	after  chan struct{}
}

// queue takes the next position.
func (m *machine) queue() turn {
	m.lineMu.Lock()
	defer m.lineMu.Unlock()
	t := turn{before: m.line, after: make(chan struct{})}
	m.line = t.after
	return t
}

// wait waits for all earlier positions, unless the context ends.
func (t turn) wait(ctx context.Context) error {
	if t.before == nil {
		return ctx.Err()
	}
	select {
	case <-t.before:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// done starts the next one, even if this one was given up before its turn.
func (t turn) done() {
	go func() {
		if t.before != nil {
			<-t.before
		}
		close(t.after)
	}()
}
