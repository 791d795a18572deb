package build

import (
	"context"
	"sync"
)

// Job is a unit of work. Jobs overlap so that no core waits for the network or a linker:
//
//	job 1   Fetch ── Compile ─┬─ (linking) ── Finish
//	job 2   Fetch ─────────── └─ Compile ─┬── (linking) ── Finish
//	job 3   Fetch ─────────────────────── └── Compile …
//
// Every function may be nil.
type Job struct {
	Label string
	// Fetch downloads. The Fetch functions of all jobs start at once.
	Fetch func(context.Context, *Task) error
	// Compile begins once the job before it is linking: two go commands that compile at the same
	// time would both compile the packages that they share.
	Compile func(context.Context, *Task) error
	// Finish begins once the jobs before this one are complete, and runs while later ones compile.
	Finish func(context.Context, *Task) error
}

// Run builds everything, in order. The first failure stops the rest.
func Run(ctx context.Context, p *Progress, jobs []Job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make([]slot, len(jobs))
	turn, before := closed(), closed()
	for i, j := range jobs {
		slots[i] = slot{task: p.Task(j.Label), turn: turn, before: before, complete: make(chan struct{})}
		turn, before = slots[i].task.released, slots[i].complete
	}
	var all sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() {
			if err := slots[i].run(ctx, j); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// slot is a job's position in the order.
type slot struct {
	task *Task
	// turn is closed when the job may compile, before when all earlier jobs are complete.
	turn, before <-chan struct{}
	complete     chan struct{}
}

func (s slot) run(ctx context.Context, j Job) error {
	defer close(s.complete)
	defer s.task.done()
	if err := s.step(ctx, closed(), j.Fetch); err != nil {
		return err
	}
	s.task.update(s.task.known)
	if err := s.step(ctx, s.turn, j.Compile); err != nil {
		return err
	}
	s.task.yield()
	return s.step(ctx, s.before, j.Finish)
}

func (s slot) step(ctx context.Context, after <-chan struct{}, do func(context.Context, *Task) error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-after:
	}
	if do == nil {
		return nil
	}
	return do(ctx, s.task)
}
