package kubetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// grace is how long a child may take to exit after SIGTERM.
const grace = 10 * time.Second

// child is a process that can't outlive this one.
type child struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func (s *Server) spawn(program string, args ...string) error {
	c, err := newChild(s.Kube.Command(context.Background(), program, args...), filepath.Join(s.dir, program+".log"))
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	c.name = program
	s.children = append(s.children, c)
	return nil
}

func newChild(cmd *exec.Cmd, log string) (*child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c := &child{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error)
	go c.supervise(started)
	return c, <-started
}

// supervise starts the process and waits for it on one thread: the kernel kills a child with the
// thread that started it, not with the process.
func (c *child) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	err := c.cmd.Start()
	started <- err
	if err == nil {
		_ = c.cmd.Wait() // its log shows the result
	}
}

// stop reports whether the process exited on request. If not, its log ends with what it was doing.
func (c *child) stop() bool {
	select {
	case <-c.done:
		return true
	default:
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
		return true
	case <-time.After(grace):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		<-c.done
		return false
	}
}

// anyExit delivers the name of a child that has exited.
func (s *Server) anyExit() <-chan string {
	exits := make(chan string, 1)
	for _, c := range s.children {
		select {
		case <-c.done:
			exits <- c.name
			return exits
		default:
		}
	}
	return exits
}

// logs returns the end of the children's logs.
func (s *Server) logs() string {
	var out strings.Builder
	for _, c := range s.children {
		data, _ := os.ReadFile(c.log)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		fmt.Fprintf(&out, "--- %s\n%s\n", c.name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return out.String()
}
