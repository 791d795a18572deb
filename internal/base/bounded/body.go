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
	// scan measures JSON, or is nil.
	scan *scanner
}

func (b *body) Read(p []byte) (int, error) {
	if b.scan != nil && b.scan.stream {
		return b.readStream(p)
	}
	if b.left <= 0 {
		return b.atLimit()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if large := b.measure(p[:n]); large != nil {
		return 0, large
	}
	return n, b.explain(err)
}

// measure charges the limits and the budget for data that was read.
func (b *body) measure(data []byte) error {
	used := int64(len(data))
	if b.scan != nil {
		before := b.scan.memory()
		if err := b.scan.add(data); err != nil {
			return err
		}
		used = b.scan.memory() - before
	}
	if b.budget != nil && b.budget.Add(-used) < 0 {
		return &TooLargeError{Peer: b.limits.Peer, Limit: b.limits.Body}
	}
	return nil
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
	if large := b.scan.add(p[:n]); large != nil {
		return 0, large
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

type budgetKey struct{}

// WithBudget limits the total of all responses to requests with the context, for callers that read
// as many responses as a peer wants, such as the pages of a list. A response counts with its size,
// or with the memory that it takes if Limits.Memory is set.
func WithBudget(ctx context.Context, bytes int64) context.Context {
	budget := &atomic.Int64{}
	budget.Store(bytes)
	return context.WithValue(ctx, budgetKey{}, budget)
}

func budgetOf(ctx context.Context) *atomic.Int64 {
	budget, _ := ctx.Value(budgetKey{}).(*atomic.Int64)
	return budget
}
