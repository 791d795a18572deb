package bounded

import (
	"context"
	"io"
	"sync/atomic"
)

// body ends the context of a request when it is closed, and fails when it exceeds a limit.
type body struct {
	io.ReadCloser

	ctx    context.Context
	stop   func()
	limits Limits
	left   int64
	budget *atomic.Int64
	// truncate ends the body at the limit instead of failing.
	truncate bool
	// endless bodies have no limit.
	endless bool
	// events is set for a stream of JSON values, each of which may be as large as the limit.
	events *events
}

func (b *body) Read(p []byte) (int, error) {
	if b.endless || b.events != nil {
		return b.readStream(p)
	}
	if b.left <= 0 {
		return b.atLimit()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.budget != nil && b.budget.Add(int64(-n)) < 0 {
		return n, &TooLargeError{Peer: b.limits.Peer, Limit: b.limits.Body}
	}
	return n, b.explain(err)
}

// atLimit distinguishes a body of exactly the limit from a larger one.
func (b *body) atLimit() (int, error) {
	if b.truncate {
		return 0, io.EOF
	}
	var more [1]byte
	n, err := b.ReadCloser.Read(more[:])
	if n > 0 {
		return 0, &TooLargeError{Peer: b.limits.Peer, Limit: b.limits.Body}
	}
	return 0, b.explain(err)
}

func (b *body) readStream(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.events != nil && b.events.add(p[:n]) > b.limits.Event {
		return 0, &TooLargeError{Peer: b.limits.Peer, Limit: b.limits.Event}
	}
	return n, b.explain(err)
}

func (b *body) explain(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // readers return io.EOF itself
		return err
	}
	return explain(b.ctx, err)
}

func (b *body) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}

// events measures the values of a JSON stream. Decoders keep a value in memory until it ends, and
// line breaks may occur inside a value, so that only brackets reveal where it ends.
type events struct {
	depth            int
	inString, escape bool
	size             int64
}

// add returns the largest size that the current value had so far.
func (e *events) add(data []byte) int64 {
	largest := int64(0)
	for _, c := range data {
		e.size++
		switch {
		case e.escape:
			e.escape = false
		case e.inString:
			e.escape, e.inString = c == '\\', c != '"'
		case c == '"':
			e.inString = true
		case c == '{', c == '[':
			e.depth++
		case c == '}', c == ']':
			e.depth--
			if e.depth <= 0 {
				largest = max(largest, e.size)
				e.depth, e.size = 0, 0
			}
		}
	}
	return max(largest, e.size)
}

type budgetKey struct{}

// WithBudget limits the total size of all responses to requests with the context, for callers that
// read as many responses as a peer wants, such as the pages of a list.
func WithBudget(ctx context.Context, bytes int64) context.Context {
	budget := &atomic.Int64{}
	budget.Store(bytes)
	return context.WithValue(ctx, budgetKey{}, budget)
}

func budgetOf(ctx context.Context) *atomic.Int64 {
	budget, _ := ctx.Value(budgetKey{}).(*atomic.Int64)
	return budget
}
