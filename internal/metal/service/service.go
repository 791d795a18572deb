// Package service keeps metal running in the background, as a service of the
// host: it belongs to no management plane, and its machines outlive them all.
//
// It owns the process and nothing of what metal does. Start with Ensure and
// Stop.
package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	askTimeout   = 2 * time.Second
	lookEvery    = 50 * time.Millisecond
	// logLines is how much of the log an error quotes.
	logLines = 5
)

// Options say which metal is wanted.
type Options struct {
	Home metal.Home
	// Driver is used by a metal that is started; one that runs keeps its own.
	Driver string
}

// Ensure returns where metal is, and starts it first if it does not run.
func Ensure(ctx context.Context, o Options) (metal.Endpoint, error) {
	if e, ok := Running(ctx, o.Home); ok {
		return e, nil
	}
	log, err := start(o)
	if err != nil {
		return metal.Endpoint{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if e, ok := Running(ctx, o.Home); ok {
			return e, nil
		}
		select {
		case <-ctx.Done():
			return metal.Endpoint{}, fmt.Errorf("metal does not answer: %w; its log is %s", ctx.Err(), log.path)
		case <-log.ended:
			return metal.Endpoint{}, fmt.Errorf("metal did not start; its log is %s, which ends with:\n  %s", log.path, log.tail())
		case <-time.After(lookEvery):
		}
	}
}

// Running tells where the metal of a home is, if it answers.
func Running(ctx context.Context, h metal.Home) (metal.Endpoint, bool) {
	e, err := h.ReadEndpoint()
	if err != nil || e.PID == 0 || !ours(e.PID) {
		return e, false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, http.NoBody)
	if err != nil {
		return e, false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return e, false
	}
	return e, res.Body.Close() == nil
}

// ours keeps a number that the kernel has given to somebody else since from
// being taken for metal.
func ours(pid int) bool {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(cmdline), "metal\x00serve")
}

// started is a metal that was just started.
type started struct {
	path  string
	ended chan struct{}
}

// start runs this program again as metal, detached from the terminal.
func start(o Options) (*started, error) {
	dir := filepath.Join(o.Home.Dir, "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("metal's home %q is not writable: %w", o.Home.Dir, err)
	}
	s := &started{path: filepath.Join(dir, "metal.log"), ended: make(chan struct{})}
	log, err := os.OpenFile(s.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening metal's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", "metal", "serve", "--home", o.Home.Dir, "--driver", o.Driver)
	cmd.Args[0] = "drover"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting metal: %w", err)
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

func (s *started) tail() string {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n  ")
}

// Stop ends the metal of a home and returns when it is gone. Its machines go
// on. It is no error if none runs.
func Stop(ctx context.Context, h metal.Home) (wasRunning bool, err error) {
	e, err := h.ReadEndpoint()
	if err != nil || e.PID == 0 || !ours(e.PID) {
		return false, nil // no endpoint: there has never been one
	}
	fd, err := unix.PidfdOpen(e.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("finding metal (pid %d): %w", e.PID, err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil {
		return true, fmt.Errorf("stopping metal (pid %d): %w", e.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for ctx.Err() == nil {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(lookEvery.Milliseconds()))
		if n > 0 {
			return true, nil
		}
	}
	return true, fmt.Errorf("metal (pid %d) is still stopping: %w", e.PID, ctx.Err())
}
