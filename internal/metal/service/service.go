// Package service runs metal in the background, as a service of the host: it belongs to no
// management plane, and its machines outlive all of them.
//
// It owns only the process. Concurrent commands that start and stop the service of one home wait
// for each other. Start with Ensure, Stop and Purge.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/drover-dev/drover/internal/base/background"
	"github.com/drover-dev/drover/internal/base/filelock"
	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/metal"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	askTimeout   = 2 * time.Second
	pollInterval = 25 * time.Millisecond
	// logLines is the number of log lines that an error quotes.
	logLines = 5
)

// Ensure returns the endpoint of the metal service of a home, and starts it with the driver if it
// is not running. A service of an older version that machines reach without TLS is restarted.
func Ensure(ctx context.Context, h metal.Home, driver string) (metal.Endpoint, error) {
	if err := h.CheckDriver(driver); err != nil {
		return metal.Endpoint{}, err
	}
	if e, ok := Running(ctx, h); ok && !e.Outdated() {
		return e, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	held, err := lock(ctx, h)
	if err != nil {
		return metal.Endpoint{}, err
	}
	defer held.Close()
	if e, ok := awaitHolder(ctx, h); ok {
		if err := h.CheckDriver(driver); err != nil || !e.Outdated() {
			return e, err
		}
		if _, err := stop(ctx, h); err != nil {
			return metal.Endpoint{}, err
		}
	}
	e, _, err := start(ctx, h, held, "--driver", driver)
	return e, err
}

// awaitHolder waits for a metal service that another process has started and that may not serve
// yet.
func awaitHolder(ctx context.Context, h metal.Home) (metal.Endpoint, bool) {
	for h.Held() && ctx.Err() == nil {
		if e, ok := Running(ctx, h); ok {
			return e, true
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	return metal.Endpoint{}, false
}

// lock serializes commands that start or stop the metal service of a home. It creates the home.
// Closing the file releases the lock.
func lock(ctx context.Context, h metal.Home) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout+stopTimeout)
	defer cancel()
	f, err := makeAndLock(ctx, h)
	for purgedConcurrently(err) && ctx.Err() == nil {
		f, err = makeAndLock(ctx, h)
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("timed out waiting for another process that starts or stops the metal service in %q: %w", h.Dir, ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("locking home %q: %w", h.Dir, err)
	}
	return f, nil
}

func makeAndLock(ctx context.Context, h metal.Home) (*os.File, error) {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return nil, err
	}
	return filelock.Wait(ctx, h.LockFile())
}

// purgedConcurrently reports whether a purge has just removed the home, after it was found or
// created.
func purgedConcurrently(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)
}

// Running returns the endpoint of the metal service of a home if it responds.
func Running(ctx context.Context, h metal.Home) (metal.Endpoint, bool) {
	e, err := h.ReadEndpoint()
	if err != nil || !e.Alive() {
		return e, false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+"/healthz", http.NoBody)
	if err != nil {
		return e, false
	}
	client, err := e.HTTPClient()
	if err != nil {
		return e, false
	}
	res, err := client.Do(req)
	if err != nil {
		return e, false
	}
	return e, res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// start runs the service in the background and waits until it responds; otherwise it stops the
// service. The service inherits the lock until it holds the home, so that it is not overlooked if
// this process is killed. The channel receives how the service exits.
func start(ctx context.Context, h metal.Home, held *os.File, flags ...string) (metal.Endpoint, <-chan error, error) {
	args := append([]string{"metal", "serve", "--home", h.Dir, "--lock-fd", "3"}, flags...)
	cmd, err := background.Start(background.Options{Args: args, Log: h.LogFile(), Files: []*os.File{held}})
	if err != nil {
		return metal.Endpoint{}, nil, fmt.Errorf("starting the metal service: %w", err)
	}
	exited := make(chan error, 1)
	go func() {
		exited <- cmd.Wait()
		close(exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if e, ok := Running(ctx, h); ok {
			return e, exited, nil
		}
		select {
		case <-ctx.Done():
			end(cmd, exited)
			return metal.Endpoint{}, nil, fmt.Errorf("waiting for the metal service to respond: %w; see its log %s", ctx.Err(), h.LogFile())
		case <-exited:
			if e, ok := awaitHolder(ctx, h); ok {
				return e, exited, nil // Another process started it first.
			}
			return metal.Endpoint{}, nil, fmt.Errorf("the metal service did not start; its log %s ends with:\n  %s", h.LogFile(), tail(h.LogFile()))
		case <-time.After(pollInterval):
		}
	}
}

func end(cmd *exec.Cmd, exited <-chan error) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		_ = cmd.Process.Kill()
	}
}

func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n  ")
}

// Stop stops the metal service of a home and waits for it to exit. Its machines keep running. It
// succeeds if no service runs.
func Stop(ctx context.Context, h metal.Home) (wasRunning bool, err error) {
	if _, err := os.Stat(h.Dir); os.IsNotExist(err) {
		return false, nil
	}
	held, err := lock(ctx, h)
	if err != nil {
		return false, err
	}
	defer held.Close()
	return stop(ctx, h)
}

// stop stops the process that holds the home, including one that does not serve yet. The caller
// holds the lock.
func stop(ctx context.Context, h metal.Home) (wasRunning bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var asked process.Process
	// The process releases the home just before it exits.
	for h.Held() || asked.Alive() {
		wasRunning = true
		if holder := h.Holder(); h.Held() && holder != asked {
			if err := holder.Signal(syscall.SIGTERM); err != nil && holder.Alive() {
				return true, fmt.Errorf("stopping the metal service (process %d): %w", holder.PID, err)
			}
			asked = holder
		}
		select {
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for the metal service (process %d) to stop: %w", asked.PID, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
	return wasRunning, nil
}
