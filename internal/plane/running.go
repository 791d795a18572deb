package plane

import (
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
	"syscall"
	"time"
)

// running is a started component, as a process or inside this one.
type running struct {
	pid int // 0 inside this process
	// exited is the result.
	exited <-chan string
	// end stops the component and waits until it has ended.
	end func()
}

func (c *child) begin() (running, error) {
	if c.Run != nil {
		return c.startInProcess(), nil
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
	return running{pid: cmd.Process.Pid, exited: exited, end: func() {
		if terminate(cmd, exited, stopGrace) {
			fmt.Fprintf(c.log, "%s did not exit within %s of SIGTERM and was killed\n", c.Name, stopGrace)
		}
	}}, nil
}

// terminate sends SIGTERM, and SIGKILL after the grace period. It reports whether it had to.
func terminate(cmd *exec.Cmd, exited <-chan string, grace time.Duration) (killed bool) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
		return false
	case <-time.After(grace):
		_ = cmd.Process.Kill()
		<-exited
		return true
	}
}

func (c *child) startInProcess() running {
	ctx, cancel := context.WithCancel(context.Background())
	exited := make(chan string, 1)
	go func() { exited <- c.runHere(ctx) }()
	return running{exited: exited, end: func() { cancel(); <-exited }}
}

// runHere converts a panic into a failure of the component, which does not end the plane. The cause
// is in its log.
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
