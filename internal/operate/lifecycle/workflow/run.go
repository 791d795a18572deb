package workflow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"

	"github.com/drover-dev/drover/internal/base/filelock"
	"github.com/drover-dev/drover/internal/base/version"
)

// run is a plan being carried out.
type run struct {
	plan    *Plan
	record  Record
	tell    func(Event)
	resumed bool

	mu      sync.Mutex
	now     *record
	waiting string
}

// Run does what is not recorded as done, phase by phase, and records each. It returns how all phases ended, also when it fails. Tell is
// told what happens as it happens, from any goroutine.
//
//	          ┌────────────────────────────────────────┐
//	locked ─▶ recorded as done? ──no──▶ run ──▶ recorded ┴─▶ … ─▶ record removed
//	          └──yes──▶ next              └─error, Ctrl-C─▶ record stays
func (p *Plan) Run(ctx context.Context, at Record, tell func(Event)) ([]Result, error) {
	if err := os.MkdirAll(at.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a place for the record: %w", err)
	}
	lock, err := filelock.Try(at.lockFile())
	if errors.Is(err, filelock.ErrHeld) {
		return nil, &BusyError{Cluster: p.Cluster, Lock: at.lockFile()}
	}
	if err != nil {
		return nil, fmt.Errorf("locking cluster %q: %w", p.Cluster, err)
	}
	defer lock.Close()
	r := &run{plan: p, record: at, tell: tell}
	if err := r.open(); err != nil {
		at.tidy()
		return nil, err
	}
	return r.all(ctx)
}

// open decides where to begin, and writes it down before anything is done, so that a place that can't be written to is noticed now.
func (r *run) open() error {
	was, err := r.record.read()
	if err != nil {
		return err
	}
	r.now = &record{
		Format: recordFormat, Command: r.plan.Command, Cluster: r.plan.Cluster, Fingerprint: r.plan.Fingerprint,
		Drover: version.Get().Version, Started: now(),
	}
	switch {
	case was == nil:
	case was.Command != r.plan.Command:
		if !r.plan.Supersedes {
			return &OtherCommandError{Cluster: r.plan.Cluster, Unfinished: was.Command, Phase: was.Running, Path: r.record.Path()}
		}
		r.now.Kept, r.now.Begun = was.Kept, was.Begun
		r.note("an earlier `drover %s` was not finished, and ends here", was.Command)
	case was.Fingerprint != r.plan.Fingerprint:
		if phase := r.fixed(was); phase != "" {
			return &ChangedError{Cluster: r.plan.Cluster, Phase: phase, Path: r.record.Path()}
		}
		r.now.Kept, r.now.Begun = was.Kept, was.Begun
		r.note("the spec has changed since an earlier run, all phases are done again")
	default:
		r.now = was
	}
	r.resumed = r.now.Begun
	return r.save()
}

func (r *run) note(format string, args ...any) {
	r.tell(Event{Status: Note, Detail: fmt.Sprintf(format, args...)})
}

// fixed is the first phase that is done and does not allow another spec.
func (r *run) fixed(was *record) string {
	for _, p := range r.plan.Phases {
		if _, done := was.find(p.Name); done && p.Fixes {
			return p.Name
		}
	}
	return ""
}

// save writes the record. The caller has the lock of the run, or is alone.
func (r *run) save() error { return r.record.write(r.now) }

func (r *run) all(ctx context.Context) ([]Result, error) {
	var results []Result
	finished := ""
	for i := range r.plan.Phases {
		phase := &r.plan.Phases[i]
		result, last, err := r.one(ctx, phase, finished)
		if err != nil {
			return results, err
		}
		results = append(results, result)
		if last {
			finished = result.Skipped
		}
	}
	return results, r.record.remove()
}

// one does a phase, if that is to be done. Last means that it said that nothing is left to do.
func (r *run) one(ctx context.Context, phase *Phase, finished string) (result Result, last bool, err error) {
	if finished != "" {
		r.tell(Event{Phase: phase.Name, Status: Skipped, Detail: finished})
		return Result{Name: phase.Name, Skipped: finished, Finished: now()}, false, nil
	}
	if was, done := r.now.find(phase.Name); done && !phase.Repeat {
		was.Before = true
		r.tell(Event{Phase: phase.Name, Status: Before, Detail: was.Skipped})
		return was, false, nil
	}
	if err := r.begin(phase); err != nil {
		return Result{}, false, err
	}
	began := time.Now()
	err = r.do(ctx, phase)
	took := time.Since(began)
	why, skipped := asSkip(err)
	if err != nil && !skipped {
		return Result{}, false, r.failed(ctx, phase, took, err)
	}
	result = Result{Name: phase.Name, Seconds: took.Seconds(), Finished: now()}
	event := Event{Phase: phase.Name, Status: Done, Took: took}
	if skipped {
		result.Skipped, event.Status, event.Detail, last = why.reason, Skipped, why.reason, why.all
	}
	if err := r.end(result); err != nil {
		return Result{}, false, r.failed(ctx, phase, took, fmt.Errorf("recording that it is done: %w", err))
	}
	r.tell(event)
	return result, last, nil
}

func (r *run) begin(phase *Phase) error {
	r.mu.Lock()
	r.waiting, r.now.Running = "", phase.Name
	err := r.save()
	r.mu.Unlock()
	if err != nil {
		return &PhaseError{Phase: phase.Name, Again: r.plan.Again, Begun: r.now.Begun, Err: fmt.Errorf("recording that it begins: %w", err)}
	}
	r.tell(Event{Phase: phase.Name, Status: Started})
	return nil
}

func (r *run) end(result Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.add(result)
	return r.save()
}

// do runs a phase unless the user has had enough already.
func (r *run) do(ctx context.Context, phase *Phase) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, span := otel.Tracer("github.com/drover-dev/drover/internal/operate/lifecycle/workflow").Start(ctx, phase.Name)
	defer span.End()
	err := phase.Run(ctx, &Progress{phase: phase.Name, run: r})
	if _, skipped := asSkip(err); err != nil && !skipped {
		span.SetStatus(codes.Error, "failed") // the error itself may quote what is nobody else's business
	}
	return err
}

// failed tells an end from outside apart from a failure. If nothing was done yet, nothing is left behind.
func (r *run) failed(ctx context.Context, phase *Phase, took time.Duration, err error) error {
	if !r.now.Begun {
		_ = r.record.remove()
	}
	if ctx.Err() != nil {
		r.tell(Event{Phase: phase.Name, Status: Interrupted, Took: took})
		return &InterruptedError{Phase: phase.Name, Again: r.plan.Again, Begun: r.now.Begun, Err: err}
	}
	r.tell(Event{Phase: phase.Name, Status: Failed, Detail: err.Error(), Took: took})
	return &PhaseError{Phase: phase.Name, Again: r.plan.Again, Begun: r.now.Begun, Err: err}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
