package guest

import (
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-dev/drover/internal/base/text"
)

// processes starts children and reaps all processes that exit: the first process inherits all
// orphans. The standard library can't be used, since it and the reaper would take exit codes from
// each other.
type processes struct {
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func newProcesses() *processes {
	p := &processes{waiting: map[int]chan syscall.WaitStatus{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			p.reap()
		}
	}()
	return p
}

func (p *processes) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
		if waiter, ok := p.waiting[pid]; ok {
			waiter <- status
			delete(p.waiting, pid)
		}
	}
}

// command is a process to start.
type command struct {
	argv []string
	env  []string
	dir  string
	in   *os.File // nil: nothing to read
	out  *os.File // standard output and error
	cred *syscall.Credential
}

// start runs the command in its own session. The channel delivers the exit status.
func (p *processes) start(c command) (pid int, ended <-chan syscall.WaitStatus, err error) {
	path, err := lookPath(c.argv[0], c.env)
	if err != nil {
		return 0, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	in := c.in
	if in == nil {
		in = null
	}
	// Locked until the child is registered, so that its exit can't be missed.
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err = syscall.ForkExec(path, c.argv, &syscall.ProcAttr{
		Dir: c.dir, Env: c.env, Files: []uintptr{in.Fd(), c.out.Fd(), c.out.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Credential: c.cred},
	})
	if err != nil {
		return 0, nil, err
	}
	status := make(chan syscall.WaitStatus, 1)
	p.waiting[pid] = status
	return pid, status, nil
}

// run starts a command and waits for it.
func (p *processes) run(c command) error {
	_, ended, err := p.start(c)
	if err != nil {
		return &exitError{argv: c.argv, err: err}
	}
	if status := <-ended; status != 0 {
		return &exitError{argv: c.argv, status: status}
	}
	return nil
}

// maxCommand limits how much of a command an error repeats.
const maxCommand = 120

// exitError is a command that could not be started or failed.
type exitError struct {
	argv   []string
	status syscall.WaitStatus
	err    error
}

func (e *exitError) Error() string {
	return text.TruncateTo(strings.Join(e.argv, " "), maxCommand) + ": " + describe(e.status, e.err)
}

func (e *exitError) Unwrap() error { return e.err }

func describe(status syscall.WaitStatus, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case status.Signaled():
		return "ended by " + status.Signal().String()
	default:
		return "exit code " + itoa(status.ExitStatus())
	}
}
