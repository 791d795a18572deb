package objects

import (
	"context"
	"sync"
)

// parallel is how many objects of a kind are written at a time.
const parallel = 4

// InParallel calls do for each item, a few at a time, and returns the first error after all started
// calls have ended.
func InParallel[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	if len(items) == 1 {
		return do(ctx, items[0])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, item := range items {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, item); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Indexes returns the indexes of a slice.
func Indexes[T any](items []T) []int {
	out := make([]int, len(items))
	for i := range out {
		out[i] = i
	}
	return out
}
