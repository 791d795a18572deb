package confined

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits apply to each piece of work.
type Limits struct {
	// Memory is the maximum memory of a child, in bytes. A child needs about 150 MiB for itself.
	Memory int64
	// Time is how much CPU time a piece of work may take, so that a busy host doesn't make it fail.
	// It ends anyway after patience times that, without the time for answers of the parent.
	Time time.Duration
	// Calls is how many questions a piece of work may ask.
	Calls int
	// Total is how long a piece of work may take with the answers.
	Total time.Duration
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
	return fmt.Sprintf("exceeded a limit: %d MiB of memory, %s of CPU time, %d calls, or a result of %d MiB",
		e.Limits.Memory>>20, e.Limits.Time, e.Limits.Calls, e.Limits.Result>>20)
}

// FailedError is an error of the work.
type FailedError struct{ Message string }

func (e *FailedError) Error() string { return e.Message }

// InputFault reports whether an error of Do is the fault of the input, so that a retry doesn't
// help.
func InputFault(err error) bool {
	var failed *FailedError
	var exceeded *ExceededError
	return errors.As(err, &failed) || errors.As(err, &exceeded)
}

// Task is a piece of work.
type Task struct {
	// Owner is who wants it. A pool does one task of an owner at a time, so that nobody takes all
	// children.
	Owner   string
	Request []byte
	// Answer answers calls. Without it, they fail.
	Answer func(ctx context.Context, question []byte) ([]byte, error)
}

// Pool starts children for one kind of work. It is safe for concurrent use.
type Pool struct {
	name   string
	limits Limits
	slots  chan struct{}

	mu   sync.Mutex
	idle []*worker
	// busy has a channel per owner of a task, which is closed when the task is done.
	busy map[string]chan struct{}
}

// NewPool returns a pool for the work that Serve has under the same name. It starts nothing.
func NewPool(name string, l Limits) *Pool {
	return &Pool{name: name, limits: l, slots: make(chan struct{}, l.Workers), busy: map[string]chan struct{}{}}
}

// errTotal is the cause of a canceled task. Its answers may be slow, so a retry may help.
var errTotal = errors.New("the work and its answers took too long")

// Do has a child do a piece of work and answers its calls. The error is an ExceededError, a
// FailedError, or one about the child itself, after which a retry may help.
func (p *Pool) Do(ctx context.Context, t Task) ([]byte, error) {
	done, err := p.enter(ctx, t.Owner)
	if err != nil {
		return nil, err
	}
	defer done()
	w, err := p.take()
	if err != nil {
		return nil, fmt.Errorf("starting a confined process: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.limits.Total, errTotal)
	defer cancel()
	result, err := w.do(ctx, t)
	var failed *FailedError
	if err == nil || errors.As(err, &failed) {
		p.keep(w)
	} else {
		w.end()
	}
	return result, err
}

// enter waits for the end of other tasks of an owner, and for a child.
func (p *Pool) enter(ctx context.Context, owner string) (done func(), err error) {
	mine := make(chan struct{})
	for other := p.claim(owner, mine); other != nil; other = p.claim(owner, mine) {
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.busy, owner)
		close(mine)
	}
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// claim marks an owner as busy until mine is closed. If another task did, it returns its channel.
func (p *Pool) claim(owner string, mine chan struct{}) (other chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.busy[owner]; other != nil {
		return other
	}
	p.busy[owner] = mine
	return nil
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
	limits  Limits
	process *os.Process
	stdin   io.Closer
	stdout  io.Closer
	in      *bufio.Writer
	out     *bufio.Reader
	leave   *time.Timer
	// late is set when the time is up.
	late atomic.Bool
	once sync.Once
	// exited is closed when the child has ended, with this state.
	exited chan struct{}
	state  *os.ProcessState
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w := &worker{limits: l, stdin: stdin, stdout: stdout, in: bufio.NewWriter(stdin), out: bufio.NewReader(stdout), exited: make(chan struct{})}
	started := make(chan error)
	go w.supervise(cmd, started)
	return w, <-started
}

// supervise starts the child and waits for its end on one thread: the kernel ends a child with the
// thread that started it, not with the process.
func (w *worker) supervise(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(w.exited)
	err := cmd.Start()
	w.process = cmd.Process
	started <- err
	if err == nil {
		w.state, _ = w.process.Wait() // Unlike that of cmd, it leaves what is in the pipes.
	}
}

func (w *worker) do(ctx context.Context, t Task) ([]byte, error) {
	stop := context.AfterFunc(ctx, w.kill)
	defer stop()
	watch := w.watch()
	defer watch.pause()
	if err := send(w.in, requests, t.Request); err != nil {
		return nil, w.explain(ctx, err)
	}
	for calls := 0; ; calls++ {
		kind, data, err := receive(w.out, uint32(w.limits.Result))
		switch {
		case err != nil:
			return nil, w.explain(ctx, err)
		case kind == returns:
			return data, nil
		case kind == fails:
			return nil, &FailedError{Message: string(data)}
		case calls == w.limits.Calls:
			return nil, &ExceededError{Limits: w.limits}
		}
		watch.pause()
		if err := w.answer(ctx, data, t); err != nil || w.late.Load() || ctx.Err() != nil {
			return nil, w.explain(ctx, err)
		}
		watch.resume()
	}
}

func (w *worker) answer(ctx context.Context, question []byte, t Task) error {
	if t.Answer == nil {
		return send(w.in, fails, []byte("no calls are possible"))
	}
	data, err := t.Answer(ctx, question)
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
		return context.Cause(ctx)
	case w.late.Load(), errors.Is(err, errTooLarge), w.state != nil && outOfMemory(w.state.ExitCode()):
		return &ExceededError{Limits: w.limits}
	default:
		return fmt.Errorf("a confined process ended early: %s: %w", w.state, err)
	}
}

func (w *worker) kill() { _ = w.process.Kill() }

// end ends the child, which has no work or doesn't finish it. A child that runs out of memory is
// given the time to exit with the code that says so.
func (w *worker) end() {
	w.once.Do(func() {
		_ = w.stdin.Close()
		timer := time.AfterFunc(endTimeout, w.kill)
		defer timer.Stop()
		_, _ = io.Copy(io.Discard, w.out)
		<-w.exited
		_ = w.stdout.Close()
	})
}
