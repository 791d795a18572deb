package local

import "context"

// turn is a place in the line of work on one machine. Work is done in the
// order in which it was asked for.
type turn struct {
	before <-chan struct{}
	after  chan struct{}
}

// queue takes the next place in the line.
func (m *machine) queue() turn {
	m.lineMu.Lock()
	defer m.lineMu.Unlock()
	t := turn{before: m.line, after: make(chan struct{})}
	m.line = t.after
	return t
}

// wait waits for those that came before, unless the context ends.
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

// done lets the next one start, also if this one has given up its place before
// it was its turn.
func (t turn) done() {
	go func() {
		if t.before != nil {
			<-t.before
		}
		close(t.after)
	}()
}
