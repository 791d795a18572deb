package plane

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"k8s.io/client-go/metadata"

	"github.com/drover-dev/drover/internal/base/atrest"
	"github.com/drover-dev/drover/internal/base/filelock"
)

// ErrNotRunning means that the operation requires a running plane.
var ErrNotRunning = errors.New("the embedded plane is not running: run `drover up` first")

// encryptionLock is held by whoever changes the keys, or copies them together with the data that
// they encrypt.
func (h Home) encryptionLock() string { return h.path("run", "encryption.lock") }

// RotateEncryption replaces the key that encrypts Secrets and encrypts every Secret with the new
// one. It can be repeated at any time and completes a rotation that was interrupted.
func RotateEncryption(ctx context.Context, h Home, progress Progress) (secrets int, err error) {
	if err := h.Check(); err != nil {
		return 0, err
	}
	if !h.Running() {
		return 0, ErrNotRunning
	}
	lock, err := filelock.Try(h.encryptionLock())
	if err != nil {
		return 0, fmt.Errorf("rotating the encryption key: %w: wait until the other rotation or backup ends, then run the command again", err)
	}
	defer lock.Close()
	e, err := h.loadEncryption()
	if err != nil {
		return 0, err
	}
	stage := progress.stage("new key")
	if !e.Rotating() {
		if err := e.addKey(time.Now()); err != nil {
			return 0, stage.failed(err)
		}
	}
	if err := h.reloadAPIServer(ctx); err != nil {
		return 0, stage.failed(err)
	}
	stage.ok()
	stage = progress.stage("secrets")
	if secrets, err = h.rewriteSecrets(ctx); err != nil {
		return secrets, stage.failed(err)
	}
	stage.ok()
	stage = progress.stage("old key")
	if err := e.dropOldKeys(); err != nil {
		return secrets, stage.failed(err)
	}
	if err := h.reloadAPIServer(ctx); err != nil {
		return secrets, stage.failed(err)
	}
	stage.ok()
	return secrets, nil
}

// reloadAPIServer makes the supervisor restart the API server, and waits until it is ready.
func (h Home) reloadAPIServer(ctx context.Context) error {
	before, err := h.component("kube-apiserver")
	if err != nil {
		return err
	}
	state, err := h.readState()
	if err != nil {
		return err
	}
	if !state.Supervisor.Alive() {
		return ErrNotRunning
	}
	if err := syscall.Kill(state.Supervisor.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("notifying the supervisor: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		now, err := h.component("kube-apiserver")
		if err != nil {
			return err
		}
		if now.Ready() && now.PID != before.PID {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server to restart: %w: run the command again to continue", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (h Home) component(name string) (ComponentStatus, error) {
	if !h.Running() {
		return ComponentStatus{}, ErrNotRunning
	}
	state, err := h.readState()
	if err != nil {
		return ComponentStatus{}, err
	}
	for _, c := range state.Components {
		if c.Name == name {
			return c, nil
		}
	}
	return ComponentStatus{}, fmt.Errorf("component %q not found", name)
}

// rewriteSecrets encrypts every Secret with the key that writes.
func (h Home) rewriteSecrets(ctx context.Context) (int, error) {
	config, err := h.readConfig()
	if err != nil {
		return 0, err
	}
	client, err := metadata.NewForConfig(h.clientConfig(config))
	if err != nil {
		return 0, fmt.Errorf("connecting to the API server: %w", err)
	}
	return atrest.Rewrite(ctx, client)
}
