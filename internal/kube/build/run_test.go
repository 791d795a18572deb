package build

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
)

// journal records steps in the order in which they happen.
type journal struct {
	mu    sync.Mutex
	steps []string
}

func (j *journal) step(name string) func(context.Context, *Task) error {
	return func(context.Context, *Task) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.steps = append(j.steps, name)
		return nil
	}
}

func (j *journal) index(name string) int { return slices.Index(j.steps, name) }

func newRunProgress() *Progress { return NewProgress(ProgressOptions{Out: io.Discard}) }

func TestRunCompilesInOrder(t *testing.T) {
	var done journal
	var fetching sync.WaitGroup
	fetching.Add(2)
	together := func(context.Context, *Task) error { // ends only if both are fetched concurrently
		fetching.Done()
		fetching.Wait()
		return nil
	}
	err := Run(t.Context(), newRunProgress(), []Job{
		{Label: "a", Fetch: together, Compile: done.step("compile a")},
		{Label: "b", Fetch: together, Compile: done.step("compile b")},
		{Label: "image", Finish: done.step("assemble")},
	})
	if err != nil || !slices.Equal(done.steps, []string{"compile a", "compile b", "assemble"}) {
		t.Errorf("steps %v, error %v", done.steps, err)
	}
}

func TestRunCompilesTheNextJobWhileOneLinks(t *testing.T) {
	next := make(chan struct{})
	err := Run(t.Context(), newRunProgress(), []Job{
		{Label: "a", Compile: func(ctx context.Context, task *Task) error {
			task.yield() // it is linking
			select {
			case <-next:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		{Label: "b", Compile: func(context.Context, *Task) error { close(next); return nil }},
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRunFinishesAfterEarlierJobsOnly(t *testing.T) {
	var done journal
	assembled := make(chan struct{})
	err := Run(t.Context(), newRunProgress(), []Job{
		{Label: "a", Compile: done.step("compile a")},
		{Label: "image", Finish: func(ctx context.Context, task *Task) error {
			defer close(assembled)
			return done.step("assemble")(ctx, task)
		}},
		{Label: "b", Compile: func(ctx context.Context, _ *Task) error { // ends only if the image is assembled concurrently
			select {
			case <-assembled:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
	})
	if err != nil || done.index("assemble") != 1 {
		t.Errorf("steps %v, error %v", done.steps, err)
	}
}

func TestRunStopsAtTheFirstFailure(t *testing.T) {
	failed := errors.New("no space left on device")
	var done journal
	err := Run(t.Context(), newRunProgress(), []Job{
		{Label: "a", Compile: func(context.Context, *Task) error { return failed }},
		{Label: "b", Fetch: func(ctx context.Context, _ *Task) error { <-ctx.Done(); return ctx.Err() }, Compile: done.step("compile b")},
		{Label: "image", Finish: done.step("assemble")},
	})
	if !errors.Is(err, failed) || len(done.steps) > 0 {
		t.Errorf("error %v, steps %v", err, done.steps)
	}
}
