package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ProgressFD is the file descriptor on which a supervisor in the background
// tells about its start.
const ProgressFD = 3

// Launch brings the plane up in the background and returns when it is ready.
// A plane that is up already is left alone: the result is ErrRunning then. One
// that somebody else is bringing up is waited for.
func Launch(ctx context.Context, o Options) error {
	if _, err := Preflight(o); err != nil {
		return err
	}
	if o.Home.Running() {
		if err := awaitOther(ctx, o); !errors.Is(err, errOtherGone) {
			return err
		}
		if err := o.portsFree(); err != nil {
			return err
		}
	}
	err := launch(ctx, o)
	if err != nil && o.Home.Running() && ctx.Err() == nil {
		// Another one took the home between our look and our start.
		return awaitOther(ctx, o)
	}
	return err
}

func launch(ctx context.Context, o Options) error {
	if err := o.Home.makeRoot(); err != nil {
		return err
	}
	logPath := o.Home.LogFile("drover")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the supervisor: %w", err)
	}
	defer log.Close()
	events, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer events.Close()
	cmd := supervisor(o)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{tell}
	err = cmd.Start()
	_ = tell.Close()
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	return follow(ctx, cmd, events, o.Progress)
}

// supervisor is this program again, detached from the terminal.
func supervisor(o Options) *exec.Cmd {
	args := []string{"up", "--foreground", "--home", o.Home.Dir, "--progress-fd", strconv.Itoa(ProgressFD)}
	if o.APIAddress != "" {
		args = append(args, "--api-address", o.APIAddress)
	}
	if o.APIPort != 0 {
		args = append(args, "--api-port", strconv.Itoa(o.APIPort))
	}
	if len(o.SANs) > 0 {
		args = append(args, "--san", strings.Join(o.SANs, ","))
	}
	if o.KubeDir != "" {
		args = append(args, "--kube-dir", o.KubeDir)
	}
	cmd := exec.Command(self(), args...)
	cmd.Args[0] = "drover"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// follow passes on the events of the supervisor until it is ready or gone. A
// user who interrupts the wait wants the half-started plane gone.
func follow(ctx context.Context, cmd *exec.Cmd, events *os.File, progress Progress) error {
	var ready bool
	var failure string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ReadProgress(events, func(e Event) {
			ready = ready || e.Status == AllReady
			if e.Status == StageFailed {
				failure = e.Error
			}
			progress.tell(e)
			if ready {
				_ = events.Close()
			}
		})
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	if ready && ctx.Err() == nil {
		return cmd.Process.Release()
	}
	_ = cmd.Wait()
	if failure == "" {
		failure = "the supervisor ended unexpectedly (" + cmd.ProcessState.String() + ")"
	}
	return errors.New(failure)
}

// awaitOther waits for a plane that another process brings up. One look is not
// enough: a supervisor that was killed this instant still looks alive.
func awaitOther(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for looks := 0; o.Home.Running(); {
		state, err := o.Home.readState()
		if err == nil && state.Supervisor.alive() && (state.Phase == PhaseReady || state.Phase == PhaseDegraded) {
			looks++
		}
		if looks == 2 {
			return ErrRunning
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process is bringing this plane up and is not ready yet: see `drover status --home %s`", o.Home.Dir)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errOtherGone
}

// errOtherGone means that the plane we were waiting for is no longer there.
var errOtherGone = errors.New("another process was bringing this plane up and has given up: run `drover up` again to see why")

// self is this program, also if its file has been replaced by a newer release
// since it was started: the link in /proc still leads to the one that runs.
func self() string {
	const link = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return link
	}
	named, err := os.Stat(path)
	if err != nil {
		return link
	}
	if running, err := os.Stat(link); err != nil || !os.SameFile(named, running) {
		return link
	}
	return path
}

// Shutdown stops the plane in h and returns when all of it is gone. It is no
// error if there was none.
func Shutdown(ctx context.Context, h Home) (wasRunning bool, err error) {
	if !h.Running() {
		return false, h.endLeftovers()
	}
	state, err := h.readState()
	if err != nil {
		return true, fmt.Errorf("finding the supervisor: %w", err)
	}
	if !state.Supervisor.alive() {
		return true, fmt.Errorf("home %q is in use by a process that is not known: is another drover starting?", h.Dir)
	}
	if err := syscall.Kill(state.Supervisor.PID, syscall.SIGTERM); err != nil {
		return true, fmt.Errorf("stopping the supervisor (pid %d): %w", state.Supervisor.PID, err)
	}
	for state.Supervisor.alive() {
		if ctx.Err() != nil {
			return true, fmt.Errorf("the supervisor (pid %d) is still stopping its components: see `drover status`", state.Supervisor.PID)
		}
		state.Supervisor.wait(200 * time.Millisecond)
	}
	return true, h.endLeftovers()
}

// Purge removes the home of a plane that is stopped.
func Purge(h Home) error {
	if err := h.Check(); err != nil {
		return err
	}
	if _, err := os.Stat(h.Dir); os.IsNotExist(err) {
		return nil
	}
	lock, err := h.lock()
	if errors.Is(err, errLocked) {
		return fmt.Errorf("home %q is in use: run `drover down` first", h.Dir)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.RemoveAll(h.Dir); err != nil {
		return fmt.Errorf("removing home %q: %w", h.Dir, err)
	}
	return nil
}
