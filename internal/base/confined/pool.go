package confined

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Limits apply to each piece of work.
type Limits struct {
	// Memory is the maximum memory of a child, in bytes. A child needs about 150 MiB for itself.
	Memory int64
	// Time is how much CPU time a piece of work may take, so that a busy host doesn't make it fail.
	// It ends anyway after patience times that, without the time for answers of the parent.
	Time time.Duration
	// Result is the maximum size of a result.
	Result int
	// Workers is the maximum number of children.
	Workers int
	// Idle is how long a child stays without work.
	Idle time.Duration
}

// ExceededError means that a piece of work exceeded a limit. It would again.
type ExceededError struct{ Limits Limits }

func (e *ExceededError) Error() string {
	return fmt.Sprintf("exceeded a limit: %d MiB of memory, %s, or a result of %d MiB",
		e.Limits.Memory>>20, e.Limits.Time, e.Limits.Result>>20)
}

// FailedError is an error of the work.
type FailedError struct{ Message string }

func (e *FailedError) Error() string { return e.Message }

// Pool starts children for one kind of work. It is safe for concurrent use.
type Pool struct {
	name   string
	limits Limits
	slots  chan struct{}

	mu   sync.Mutex
	idle []*worker
}

// NewPool returns a pool for the work that Serve has under the same name. It starts nothing.
func NewPool(name string, l Limits) *Pool {
	return &Pool{name: name, limits: l, slots: make(chan struct{}, l.Workers)}
}

// Do has a child do a piece of work and answers its calls. The error is an ExceededError, a
// FailedError, or one about the child itself, after which a retry may help.
func (p *Pool) Do(ctx context.Context, request []byte, answer Call) ([]byte, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.slots }()
	w, err := p.take()
	if err != nil {
		return nil, fmt.Errorf("starting a confined process: %w", err)
	}
	result, err := w.do(ctx, request, answer)
	var failed *FailedError
	if err == nil || errors.As(err, &failed) {
		p.keep(w)
	} else {
		w.end()
	}
	return result, err
}

func (p *Pool) take() (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		w.leave.Stop()
		return w, nil
	}
	return start(p.name, p.limits)
}

func (p *Pool) keep(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, w)
	w.leave = time.AfterFunc(p.limits.Idle, func() { p.remove(w) })
}

// remove ends a child unless it was taken.
func (p *Pool) remove(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.idle {
		if other == w {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			go w.end()
			return
		}
	}
}

// Close ends idle children.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		w.leave.Stop()
		w.end()
	}
	p.idle = nil
}

// worker is a child.
type worker struct {
	limits Limits
	cmd    *exec.Cmd
	stdin  io.Closer
	in     *bufio.Writer
	out    *bufio.Reader
	leave  *time.Timer
	// late is set when the time is up.
	late atomic.Bool
	once sync.Once
}

// endTimeout is how long a child may take to end by itself.
const endTimeout = time.Second

func start(name string, l Limits) (*worker, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{
		nameVariable + "=" + name, memoryVariable + "=" + strconv.FormatInt(l.Memory*overhead, 10),
		// Half of the memory is for garbage at most; the collector does more before it is full.
		"GOMEMLIMIT=" + strconv.FormatInt(l.Memory*overhead/2, 10), "GOMAXPROCS=1", "GOTRACEBACK=none", "PATH=" + os.Getenv("PATH"),
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &worker{limits: l, cmd: cmd, stdin: stdin, in: bufio.NewWriter(stdin), out: bufio.NewReader(stdout)}, nil
}

func (w *worker) do(ctx context.Context, request []byte, answer Call) ([]byte, error) {
	stop := context.AfterFunc(ctx, w.kill)
	defer stop()
	watch := w.watch()
	defer watch.stop()
	if err := send(w.in, requests, request); err != nil {
		return nil, w.explain(ctx, err)
	}
	for {
		kind, data, err := receive(w.out, uint32(w.limits.Result))
		switch {
		case err != nil:
			return nil, w.explain(ctx, err)
		case kind == returns:
			return data, nil
		case kind == fails:
			return nil, &FailedError{Message: string(data)}
		}
		watch.pause()
		if err := w.answer(data, answer); err != nil || w.late.Load() {
			return nil, w.explain(ctx, err)
		}
		watch.resume()
	}
}

func (w *worker) answer(question []byte, answer Call) error {
	if answer == nil {
		return send(w.in, fails, []byte("no calls are possible"))
	}
	data, err := answer(question)
	if err != nil {
		return send(w.in, fails, []byte(err.Error()))
	}
	return send(w.in, answers, data)
}

// explain returns the error of a child that doesn't answer as it should. A child that was ended by
// someone else, for example because the host has no memory left, has exceeded no limit.
func (w *worker) explain(ctx context.Context, err error) error {
	w.end()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case w.late.Load(), errors.Is(err, errTooLarge), w.cmd.ProcessState != nil && outOfMemory(w.cmd.ProcessState.ExitCode()):
		return &ExceededError{Limits: w.limits}
	default:
		return fmt.Errorf("a confined process ended early: %s: %w", w.cmd.ProcessState, err)
	}
}

func (w *worker) kill() { _ = w.cmd.Process.Kill() }

// end ends the child, which has no work or doesn't finish it.
func (w *worker) end() {
	w.once.Do(func() {
		_ = w.stdin.Close()
		// One that is already ending tells why.
		timer := time.AfterFunc(endTimeout, w.kill)
		defer timer.Stop()
		_, _ = io.Copy(io.Discard, w.out)
		_ = w.cmd.Wait()
	})
}
