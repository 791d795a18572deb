package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/confine"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// Console implements driver.Console.
func (d *Driver) Console(ctx context.Context, id string, follow bool) (io.ReadCloser, error) { //nolint:revive // of the interface
	m, err := d.machine(id)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(m.path(guest.ConsoleFile))
	if err != nil {
		return nil, fmt.Errorf("opening the console of %q: %w", id, err)
	}
	if !follow {
		return f, nil
	}
	return &follower{ctx: ctx, file: f}, nil
}

// follower reads a file that grows, until the context ends.
type follower struct {
	ctx  context.Context
	file *os.File
}

// followInterval is the maximum delay of followed output.
const followInterval = 100 * time.Millisecond

func (f *follower) Read(p []byte) (int, error) {
	for {
		n, err := f.file.Read(p)
		if n > 0 || (err != nil && !errors.Is(err, io.EOF)) {
			return n, err
		}
		select {
		case <-f.ctx.Done():
			return 0, io.EOF
		case <-time.After(followInterval):
		}
	}
}

func (f *follower) Close() error { return f.file.Close() }

// Enter implements driver.Shell.
func (d *Driver) Enter(ctx context.Context, id string, argv []string, stdio driver.Stdio) error {
	m, err := d.machine(id)
	if err != nil {
		return err
	}
	p, ok := m.process()
	if !ok {
		return fmt.Errorf("local machine %q is not running", id)
	}
	if len(argv) == 0 {
		argv = []string{"/bin/bash", "-l"}
	}
	cmd := exec.CommandContext(ctx, d.program, append([]string{EnterCommand, strconv.Itoa(p.PID)}, argv...)...)
	cmd.Args[0] = "drover"
	cmd.Env = append(guest.Environment(), "TERM="+os.Getenv("TERM"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.In, stdio.Out, stdio.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %q in local machine %q: %w", argv[0], id, err)
	}
	return nil
}

// enter becomes a program in the machine whose first process is pid. It is confined like the
// machine, because root there can take control of it.
func enter(pid string, argv []string) error {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return fmt.Errorf("reading process ID %q: %w", pid, err)
	}
	if err := joinProcess(number); err != nil {
		return err
	}
	program, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := confine.Thread(); err != nil {
		return err
	}
	args := []string{"nsenter", "--target", pid, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wdns=/root"}
	if inUserNamespace(number) {
		args = append(args, "--user")
	}
	args = append(append(args, "--"), argv...)
	return fmt.Errorf("executing %q: %w", program, unix.Exec(program, args, os.Environ()))
}
