package phase

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

// tracer is the name of the source of spans.
const tracer = "github.com/drover-dev/drover/internal/operate/lifecycle/phase"

// run is a plan in progress.
type run struct {
	plan    *Plan
	record  Record
	report  func(Event)
	resumed bool
	// superseded is the checkpoint that this run replaces.
	superseded *checkpoint

	mu       sync.Mutex
	now      *checkpoint
	activity string
}

// Run runs the phases that are not recorded as done, and records each. It returns the results of
// the phases that ended, also when it fails. It calls report for every event, from any goroutine.
//
//	          ┌────────────────────────────────────────┐
//	locked ─▶ recorded as done? ──no──▶ run ──▶ recorded ┴─▶ … ─▶ record removed
//	          └──yes──▶ next              └─error, Ctrl-C─▶ record stays
func (p *Plan) Run(ctx context.Context, at Record, report func(Event)) ([]Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(at.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the checkpoint: %w", err)
	}
	lock, err := filelock.Try(at.lockFile())
	if errors.Is(err, filelock.ErrHeld) {
		return nil, &BusyError{Cluster: p.Cluster, Lock: at.lockFile()}
	}
	if err != nil {
		return nil, fmt.Errorf("locking cluster %q: %w", p.Cluster, err)
	}
	defer lock.Close()
	r := &run{plan: p, record: at, report: report}
	if err := r.open(); err != nil {
		at.removeLock()
		return nil, err
	}
	return r.all(ctx)
}

// open decides where to begin, and writes the checkpoint before any phase runs, so that a directory
// that can't be written to fails the run early.
func (r *run) open() error {
	was, err := r.record.read()
	if err != nil {
		return err
	}
	r.now = &checkpoint{
		Format: checkpointFormat, Command: r.plan.Command, Cluster: r.plan.Cluster, Fingerprint: r.plan.Fingerprint,
		Drover: version.Get().Version, Started: now(),
	}
	switch {
	case was == nil:
	case was.Command != r.plan.Command:
		if !r.plan.Supersedes {
			return &OtherCommandError{Cluster: r.plan.Cluster, Unfinished: was.Command, Phase: was.Running, Path: r.record.Path()}
		}
		r.now.Kept, r.now.Begun, r.superseded = was.Kept, was.Begun, was
		r.note("abandoning an unfinished `drover %s`", was.Command)
	case was.Fingerprint != r.plan.Fingerprint:
		if phase := r.fixed(was); phase != "" {
			return &ChangedError{Cluster: r.plan.Cluster, Phase: phase, Path: r.record.Path()}
		}
		r.now.Kept, r.now.Begun = was.Kept, was.Begun
		r.note("the spec has changed since the earlier run: running all phases again")
	default:
		r.now = was
	}
	r.resumed = r.now.Begun
	return r.save()
}

func (r *run) note(format string, args ...any) {
	r.report(Event{Status: Note, Detail: fmt.Sprintf(format, args...)})
}

// fixed returns the first phase that is done and fixes the spec.
func (r *run) fixed(was *checkpoint) string {
	for _, p := range r.plan.Phases {
		if _, done := was.find(p.Name); done && p.Fixes {
			return p.Name
		}
	}
	return ""
}

// save writes the checkpoint. The caller holds mu, or is the only goroutine.
func (r *run) save() error { return r.record.write(r.now) }

func (r *run) all(ctx context.Context) ([]Result, error) {
	var results []Result
	finished := ""
	for i := range r.plan.Phases {
		phase := &r.plan.Phases[i]
		result, last, err := r.runPhase(ctx, phase, finished)
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

// runPhase runs a phase unless there is no need to. Last means that no later phase has anything to
// do.
func (r *run) runPhase(ctx context.Context, phase *Phase, finished string) (result Result, last bool, err error) {
	if finished != "" {
		r.report(Event{Phase: phase.Name, Status: Skipped, Detail: finished})
		return Result{Name: phase.Name, Skipped: finished, Finished: now()}, false, nil
	}
	if was, done := r.now.find(phase.Name); done && !phase.Repeat {
		was.Before = true
		r.report(Event{Phase: phase.Name, Status: Before, Detail: was.Skipped})
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
		return Result{}, false, r.failed(ctx, phase, took, fmt.Errorf("writing the checkpoint: %w", err))
	}
	r.report(event)
	return result, last, nil
}

func (r *run) begin(phase *Phase) error {
	r.mu.Lock()
	r.activity, r.now.Running = "", phase.Name
	err := r.save()
	r.mu.Unlock()
	if err != nil {
		return &FailedError{Phase: phase.Name, Again: r.plan.Again, Begun: r.now.Begun, Err: fmt.Errorf("writing the checkpoint: %w", err)}
	}
	r.report(Event{Phase: phase.Name, Status: Started})
	return nil
}

func (r *run) end(result Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.add(result)
	return r.save()
}

// do runs a phase unless the run was canceled.
func (r *run) do(ctx context.Context, phase *Phase) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, span := otel.Tracer(tracer).Start(ctx, phase.Name)
	defer span.End()
	err := phase.Run(ctx, &Progress{phase: phase.Name, run: r})
	if _, skipped := asSkip(err); err != nil && !skipped {
		span.SetStatus(codes.Error, "failed") // The error itself may quote confidential values.
	}
	return err
}

// failed distinguishes a canceled run from a failed one. If nothing was changed, it leaves nothing
// behind, except a checkpoint that it had superseded.
func (r *run) failed(ctx context.Context, phase *Phase, took time.Duration, err error) error {
	switch {
	case r.superseded != nil && len(r.now.Done) == 0:
		_ = r.record.write(r.superseded)
	case !r.now.Begun:
		_ = r.record.remove()
	}
	if ctx.Err() != nil {
		r.report(Event{Phase: phase.Name, Status: Interrupted, Took: took})
		return &InterruptedError{Phase: phase.Name, Again: r.plan.Again, Begun: r.now.Begun, Err: err}
	}
	r.report(Event{Phase: phase.Name, Status: Failed, Detail: err.Error(), Took: took})
	return &FailedError{Phase: phase.Name, Again: r.plan.Again, Begun: r.now.Begun, Err: err}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
