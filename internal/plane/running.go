package plane

import (
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
	"syscall"
	"time"
)

// running is a component that has been started, as a process or within this one.
type running struct {
	pid int // 0 in this one
	// exited says how it ended.
	exited <-chan string
	// end has it end and returns when it has.
	end func()
}

func (c *child) begin() (running, error) {
	if c.Run != nil {
		return c.beginHere(), nil
	}
	cmd := c.Command()
	cmd.Stdout, cmd.Stderr = c.log, c.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return running{}, err
	}
	exited := make(chan string, 1)
	go func() {
		_ = cmd.Wait()
		exited <- cmd.ProcessState.String()
	}()
	return running{pid: cmd.Process.Pid, exited: exited, end: func() { terminate(cmd, exited, stopGrace) }}, nil
}

// terminate asks first and insists after the grace period.
func terminate(cmd *exec.Cmd, exited <-chan string, grace time.Duration) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(grace):
		_ = cmd.Process.Kill()
		<-exited
	}
}

func (c *child) beginHere() running {
	ctx, cancel := context.WithCancel(context.Background())
	exited := make(chan string, 1)
	go func() { exited <- c.runHere(ctx) }()
	return running{exited: exited, end: func() { cancel(); <-exited }}
}

// runHere has a panic end the component and not the plane. What went wrong is in its log, as with
// others.
func (c *child) runHere(ctx context.Context) (how string) {
	defer func() {
		if problem := recover(); problem != nil {
			how = fmt.Sprintf("panic: %v", problem)
			_, _ = fmt.Fprintf(c.log, "%s\n%s", how, debug.Stack())
		}
	}()
	if err := c.Run(ctx, c.log); err != nil {
		_, _ = fmt.Fprintln(c.log, err)
		return err.Error()
	}
	return "ended"
}
