package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/packet/access"
)

// usePacketAPI has a supervisor look for the Packet API anew.
const usePacketAPI = unix.SIGUSR1

// SkippedError says why a plane goes without something that it can do without.
type SkippedError struct{ Reason string }

func (e *SkippedError) Error() string { return e.Reason }

// findPacket begins to look for the Packet API and returns how to wait for it.
func (p *Plane) findPacket(ctx context.Context, find func(context.Context) (access.Credentials, error)) func(Progress) error {
	if find == nil {
		return p.forgetPacket
	}
	done := make(chan error, 1)
	go func() {
		found, err := find(ctx)
		done <- errors.Join(err, p.home.writePacket(found))
	}()
	return func(progress Progress) error {
		stage := progress.stage("metal")
		err := <-done
		var skipped *SkippedError
		switch {
		case errors.As(err, &skipped):
			stage.skipped(skipped.Reason)
		case err != nil:
			return stage.failed(err)
		default:
			stage.ok()
		}
		return nil
	}
}

// forgetPacket has the manager go without a Packet API.
func (p *Plane) forgetPacket(progress Progress) error {
	if err := p.home.writePacket(access.Credentials{}); err != nil {
		return progress.stage("metal").failed(err)
	}
	return nil
}

// managerEnvironment is asked for at each start of the manager, so that it
// always has the credentials that are valid now.
func (p *Plane) managerEnvironment() []string {
	found, err := p.home.readPacket()
	if err != nil {
		p.log.Error("The Packet API is not known", "error", err)
	}
	p.stateMu.Lock()
	p.packet = found
	p.stateMu.Unlock()
	env := os.Environ()
	if found.Token != "" {
		env = append(env, access.URLKey+"="+found.URL, access.TokenKey+"="+found.Token)
	}
	return env
}

// renewPacket restarts the manager if it has other credentials than it should.
func (p *Plane) renewPacket() {
	wanted, err := p.home.readPacket()
	p.stateMu.Lock()
	same := wanted == p.packet
	p.stateMu.Unlock()
	if err != nil || same {
		return
	}
	p.log.Info("The manager is restarted to use another Packet API", "url", wanted.URL)
	p.child("manager").restart()
}

func (h Home) writePacket(c access.Credentials) error { return writeJSON(h.packetFile(), c) }

func (h Home) readPacket() (access.Credentials, error) {
	var c access.Credentials
	data, err := os.ReadFile(h.packetFile())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading the Packet API of the manager: %w", err)
	}
	return c, nil
}

// UsePacketAPI has a plane that is up use this API, and returns when its
// manager does.
func UsePacketAPI(ctx context.Context, h Home, c access.Credentials) error {
	state, err := h.readState()
	if err != nil {
		return fmt.Errorf("finding the supervisor: %w", err)
	}
	if was, err := h.readPacket(); err == nil && was == c && state.PacketAPI == c.URL {
		return nil
	}
	if err := h.writePacket(c); err != nil {
		return err
	}
	if err := state.Supervisor.Signal(usePacketAPI); err != nil {
		return fmt.Errorf("telling the supervisor (pid %d) about the Packet API: %w", state.Supervisor.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for state.PacketAPI != c.URL || !state.component("manager").Ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the manager does not use the Packet API at %s yet: see `drover status`", c.URL)
		case <-time.After(50 * time.Millisecond):
		}
		if state, err = ReadState(h); err != nil {
			return err
		}
	}
	return nil
}
