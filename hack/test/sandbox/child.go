package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is the running test binary.
type child struct {
	pid     int
	signals chan os.Signal
}

// start makes this process the reaper of orphans, and starts the test binary.
func start(o Options, temp string) (*child, error) {
	args, err := o.command()
	if err != nil {
		return nil, err
	}
	// The kernel kills the child with the thread that started it.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming the reaper of orphans: %w", err)
	}
	c := &child{signals: make(chan os.Signal, 1)}
	signal.Notify(c.signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP)
	c.pid, err = syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env: o.environment(temp), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", args[0], err)
	}
	go c.forward()
	return c, nil
}

// forward forwards signals to the test binary: the go command requests stack traces of one that
// times out.
func (c *child) forward() {
	for s := range c.signals {
		if number, ok := s.(syscall.Signal); ok {
			_ = syscall.Kill(c.pid, number) // it may have exited
		}
	}
}

// wait reaps orphans until the test binary has exited, and returns its exit code.
func (c *child) wait() int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1
		case pid == c.pid && status.Signaled():
			return 128 + int(status.Signal())
		case pid == c.pid:
			return status.ExitStatus()
		}
	}
}

// leaks kills and removes what the test binary left, and returns a line for each.
func leaks(temp string, grace time.Duration) []string {
	var out []string
	for _, p := range killOrphans(grace) {
		out = append(out, "process "+p)
	}
	out = append(out, unmount(temp)...)
	out = append(out, bridges(temp)...)
	out = append(out, races(temp)...)
	return append(out, leftovers(temp)...)
}

// killOrphans waits for the processes of the test binary to exit, then kills and names the
// remaining ones.
func killOrphans(wait time.Duration) []string {
	deadline := time.After(wait)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for reap() {
		select {
		case <-tick.C:
			continue
		case <-deadline:
		}
		break
	}
	var named []string
	for range 100 { // killed processes may leave children, which become ours
		pids := children(os.Getpid())
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			named = append(named, describe(pid))
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}
	return named
}

// reap collects the exit status of every exited child, and reports whether any is left.
func reap() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		}
	}
}

// describe returns the ID and the start of the command line of a process.
func describe(pid int) string {
	const width = 200
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	line := strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
	return fmt.Sprintf("%d: %.*s", pid, width, line)
}
