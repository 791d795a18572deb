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

	"github.com/drover-dev/drover/internal/base/background"
)

// ProgressFD is the file descriptor on which a supervisor in the background reports its start.
const ProgressFD = 3

// Launch starts the plane in the background and returns when it is ready. If the plane is already
// running, it returns ErrRunning. If another process is starting it, Launch waits for that.
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
		// Another process took the home after the check.
		return awaitOther(ctx, o)
	}
	return err
}

func launch(ctx context.Context, o Options) error {
	if err := o.Home.makeRoot(); err != nil {
		return err
	}
	events, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("creating a pipe: %w", err)
	}
	defer events.Close()
	cmd, err := background.Start(background.Options{Args: supervisorArgs(o), Log: o.Home.LogFile("drover"), Files: []*os.File{tell}, Env: o.environment()})
	_ = tell.Close()
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	return follow(ctx, cmd, events, o.Progress)
}

// supervisorArgs returns the arguments of the supervisor.
func supervisorArgs(o Options) []string {
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
	if o.RegistryAddress != "" {
		args = append(args, "--registry-address", o.RegistryAddress)
	}
	if o.RegistryPort != 0 {
		args = append(args, "--registry-port", strconv.Itoa(o.RegistryPort))
	}
	if o.BundleKey != "" {
		args = append(args, "--bundle-key", o.BundleKey)
	}
	if o.GitOps != nil {
		args = append(args, "--gitops="+strconv.FormatBool(*o.GitOps))
	}
	if o.KubeDir != "" {
		args = append(args, "--kube-dir", o.KubeDir)
	}
	args = append(args, o.Backups.args()...)
	return append(args, o.Flags...)
}

// follow forwards the events of the supervisor until it is ready or exits. If the user interrupts
// the wait, the half-started plane is stopped.
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
			progress.send(e)
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
		failure = "the supervisor exited unexpectedly (" + cmd.ProcessState.String() + ")"
	}
	return errors.New(failure)
}

// awaitOther waits for a plane that another process starts. It observes the state twice, because a
// supervisor that was just killed still appears alive.
func awaitOther(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for looks := 0; o.Home.Running(); {
		state, err := o.Home.readState()
		if err == nil && state.Supervisor.Alive() && (state.Phase == PhaseReady || state.Phase == PhaseDegraded) {
			looks++
		}
		if looks == 2 {
			return ErrRunning
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for another process to start the embedded plane: see `drover status --home %s`", o.Home.Dir)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errOtherGone
}

// errOtherGone means that the awaited plane no longer exists.
var errOtherGone = errors.New("another process failed to start the embedded plane: run `drover up` again to see why")

// Shutdown stops the plane in h and returns when all of its processes have exited. It is not an
// error if none was running.
func Shutdown(ctx context.Context, h Home) (wasRunning bool, err error) {
	return h.end(ctx, syscall.SIGTERM)
}

// Discard kills the plane in h, if it is running, and removes its home. Nothing is stopped in
// order: the children end with their supervisor.
func Discard(ctx context.Context, h Home) error {
	if err := h.Check(); err != nil {
		return err
	}
	if _, err := h.end(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	return Purge(h)
}

// end signals the supervisor and waits until all processes of the plane have exited.
func (h Home) end(ctx context.Context, signal syscall.Signal) (wasRunning bool, err error) {
	if !h.Running() {
		return false, h.endLeftovers()
	}
	state, err := h.readState()
	if err != nil {
		return true, fmt.Errorf("finding the supervisor: %w", err)
	}
	if !state.Supervisor.Alive() {
		return true, fmt.Errorf("home %q is in use by an unknown process: wait for another drover that may be starting", h.Dir)
	}
	if err := syscall.Kill(state.Supervisor.PID, signal); err != nil {
		return true, fmt.Errorf("stopping the supervisor (pid %d): %w", state.Supervisor.PID, err)
	}
	for state.Supervisor.Alive() {
		if ctx.Err() != nil {
			return true, fmt.Errorf("timed out waiting for the supervisor (pid %d) to stop its components: see `drover status`", state.Supervisor.PID)
		}
		state.Supervisor.Wait(200 * time.Millisecond)
	}
	return true, h.endLeftovers()
}

// Purge removes the home of a stopped plane.
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
	if err := h.remove(); err != nil {
		return fmt.Errorf("removing home %q: %w", h.Dir, err)
	}
	return nil
}

// remove deletes the file that identifies the home last, so that an interrupted deletion can be
// repeated.
func (h Home) remove() error {
	entries, err := os.ReadDir(h.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if h.path(e.Name()) == h.metaFile() {
			continue
		}
		if err := os.RemoveAll(h.path(e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(h.Dir)
}
