package plane

import (
	"context"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Component is a supervised process, or a supervised part of this process.
type Component struct {
	Name    string
	Version string
	// Command returns a new command for each start.
	Command func() *exec.Cmd
	// Run, if set, runs the component in this process until its context ends.
	Run func(ctx context.Context, log io.Writer) error
	// Probe returns nil when the component serves.
	Probe func(context.Context) error
	// AskVersion, if set, returns the version once the component serves.
	AskVersion func(context.Context) (string, error)
}

const (
	probeWhileStarting = 50 * time.Millisecond
	probeWhileReady    = 10 * time.Second
	probeTimeout       = 5 * time.Second
	stopGrace          = 20 * time.Second

	backoffFirst = 250 * time.Millisecond
	backoffLimit = 30 * time.Second
	// A component that served this long restarts with a short backoff.
	backoffForget = time.Minute

	// After this many exits before it first served, a component has failed to start.
	startFailures = 3
	// The number of log lines shown with that failure.
	statusLines = 20
	// The number of consecutive exits that count as a crash loop.
	crashLoopAfter = 3
)

// child supervises one component, from start until stop:
//
//	Stopped ──▶ Starting ──probe──▶ Ready ◀──probe──▶ Unready
//	   ▲            │ ▲               │                  │
//	   │          exit└──backoff──┐  exit               exit
//	 stop           ▼             │   ▼                  ▼
//	   └──────── Backoff / CrashLoop ◀───────────────────┘
//
// After several consecutive exits it stays in CrashLoop, even while it is restarted, until it
// serves.
type child struct {
	Component
	log     *logFile
	changed func()

	cancel   context.CancelFunc
	done     chan struct{}
	restartc chan struct{}
	served   chan struct{} // closed when it first served
	serves   sync.Once
	hopeless chan struct{} // closed when it failed too often before that

	mu     sync.Mutex
	status ComponentStatus
	streak int   // exits since it last served for backoffForget
	answer error // of the last probe
}

func newChild(c Component, log *logFile, changed func()) *child {
	return &child{
		Component: c, log: log, changed: changed,
		done: make(chan struct{}), restartc: make(chan struct{}, 1),
		served: make(chan struct{}), hopeless: make(chan struct{}),
		status: ComponentStatus{Name: c.Name, Version: c.Version, State: Stopped, Since: time.Now(), Log: log.path},
	}
}

// start starts supervision. The plane stops its children in order, so they do not share a context.
func (c *child) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go c.run(ctx)
}

// stop stops the process and waits until it has exited.
func (c *child) stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	<-c.done
	c.log.close()
}

// restart restarts the process, without counting that as a failure.
func (c *child) restart() {
	select {
	case c.restartc <- struct{}{}:
	default:
	}
}

func (c *child) snapshot() ComponentStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	if s.State == Backoff || s.State == CrashLoop {
		s.LogTail = meaningfulLines(c.log.tail(), statusLines)
	}
	return s
}

func (c *child) update(change func(*ComponentStatus)) {
	c.mu.Lock()
	before := c.status.State
	change(&c.status)
	if c.status.State != before {
		c.status.Since = time.Now()
	}
	c.mu.Unlock()
	c.changed()
}

func (c *child) run(ctx context.Context) {
	// The kernel kills a child when the thread that started it ends, so that no child outlives the
	// supervisor. Supervision therefore pins its thread.
	runtime.LockOSThread()
	defer close(c.done)
	for ctx.Err() == nil {
		wait := c.runOnce(ctx)
		select {
		case <-ctx.Done():
		case <-c.restartc:
		case <-time.After(wait):
		}
	}
	c.update(func(s *ComponentStatus) { s.State, s.PID = Stopped, 0 })
}

// runOnce runs the component once and returns how long to wait before the next start.
func (c *child) runOnce(ctx context.Context) time.Duration {
	r, err := c.begin()
	if err != nil {
		return c.failed("could not be started: " + err.Error())
	}
	c.update(func(s *ComponentStatus) {
		s.PID, s.Started = r.pid, time.Now()
		// A crash loop lasts until the component serves, not only between restarts.
		if s.State != CrashLoop {
			s.State = Starting
		}
	})
	probeCtx, stopProbe := context.WithCancel(ctx)
	defer stopProbe()
	go c.probe(probeCtx)
	select {
	case how := <-r.exited:
		return c.failed(how)
	case <-c.restartc:
	case <-ctx.Done():
	}
	r.end()
	return 0
}

func (c *child) failed(how string) time.Duration {
	var wait time.Duration
	c.update(func(s *ComponentStatus) {
		if s.Ready() && time.Since(s.Since) > backoffForget {
			c.streak = 0
		}
		c.streak++
		wait = backoff(c.streak)
		s.State, s.PID, s.LastExit = Backoff, 0, how
		s.Restarts++
		if c.streak >= crashLoopAfter {
			s.State = CrashLoop
		}
	})
	if c.streak == startFailures && !closed(c.served) {
		close(c.hopeless)
	}
	return wait
}

// backoff doubles with each consecutive exit.
func backoff(streak int) time.Duration {
	d := backoffFirst
	for i := 1; i < streak && d < backoffLimit; i++ {
		d *= 2
	}
	return min(d, backoffLimit)
}

// probe updates the state while the process runs.
func (c *child) probe(ctx context.Context) {
	for {
		probeCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		err := c.Probe(probeCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			c.askVersion(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.probed(err)):
		}
	}
}

func (c *child) askVersion(ctx context.Context) {
	if c.AskVersion == nil || c.snapshotState(Ready) {
		return
	}
	if v, err := c.AskVersion(ctx); err == nil {
		c.update(func(s *ComponentStatus) { s.Version = v })
	}
}

// probed records the result of a probe and returns when to probe again.
func (c *child) probed(err error) time.Duration {
	c.mu.Lock()
	c.answer = err
	c.mu.Unlock()
	if err == nil {
		if !c.snapshotState(Ready) {
			c.update(func(s *ComponentStatus) { s.State = Ready })
		}
		c.serves.Do(func() { close(c.served) })
		return probeWhileReady
	}
	if c.snapshotState(Ready) {
		c.update(func(s *ComponentStatus) { s.State = Unready })
	}
	return probeWhileStarting
}

// startError explains why the component is not ready.
func (c *child) startError() *StartError {
	e := &StartError{Component: c.Name, Log: c.log.path, LogTail: c.log.tail()}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.status.LastExit != "":
		e.Reason = c.status.LastExit
	case c.answer != nil:
		e.Reason = "no good answer in time: " + c.answer.Error()
	}
	return e
}

func (c *child) snapshotState(state string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status.State == state
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
