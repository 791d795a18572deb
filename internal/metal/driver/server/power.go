package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// offFile has the boot ID of a server that was told to shut down.
const offFile = "off"

// powerOff shuts the server down, or restarts it if it is to be on again: without a management
// controller nothing else could turn it on.
func (m *machine) powerOff(want driver.Machine) error {
	if !m.provisioned() {
		return errors.New("a server can't be turned off while it is being provisioned")
	}
	ctx, cancel := m.begin()
	defer cancel()
	err := m.retry(ctx, func() error { return m.shutDown(ctx, want) })
	if err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	m.report(driver.Event{Phase: driver.Stopped, Message: "the server is shutting down"})
	return nil
}

func (m *machine) shutDown(ctx context.Context, want driver.Machine) error {
	if m.has(offFile) {
		return nil
	}
	c, err := m.driver.dial(ctx, *want.Server)
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := readStatus(ctx, c)
	if err != nil {
		return err
	}
	if err := m.mark(offFile, status.BootID); err != nil {
		return err
	}
	verb := driver.ShutDown
	if want.Cycle {
		verb = driver.Restart
	}
	return switchPower(ctx, c, verb)
}

// switchPower shuts a server down or restarts it.
func switchPower(ctx context.Context, c *remote.Client, verb driver.ServerPower) error {
	err := c.Root(ctx, "systemctl "+string(verb), remote.Streams{})
	var exit *remote.ExitError
	if errors.As(err, &exit) || ctx.Err() != nil {
		return err
	}
	return nil // The connection is lost with the server.
}

// PowerServer implements driver.Operator.
func (d *Driver) PowerServer(ctx context.Context, s driver.Server, action driver.ServerPower) error {
	c, err := d.dial(ctx, s)
	if err != nil {
		return err
	}
	defer c.Close()
	return switchPower(ctx, c, action)
}

// powerOn waits until a server that was shut down has booted again. Somebody may have to press its
// button.
func (m *machine) powerOn(want driver.Machine) error {
	if m.has(offFile) {
		ctx, cancel := m.begin()
		defer cancel()
		if err := m.retry(ctx, func() error { return m.awaitBoot(ctx, want) }); err != nil {
			m.report(driver.Event{Type: "driver.error", Message: fmt.Sprintf("the server has not booted: %v; turn it on", err)})
			return nil
		}
	}
	m.report(driver.Event{Phase: driver.Running, Percent: 100, Message: "the server is running"})
	return nil
}

func (m *machine) awaitBoot(ctx context.Context, want driver.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := m.driver.dial(ctx, *want.Server)
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := readStatus(ctx, c)
	if err != nil {
		return err
	}
	if !m.contains(offFile, status.BootID) {
		return m.drop(offFile)
	}
	return errors.New("the server has not shut down yet")
}

func readStatus(ctx context.Context, c *remote.Client) (agent.Status, error) {
	var s agent.Status
	out, err := c.Output(ctx, agent.Program+" "+agent.Command+" status")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return s, fmt.Errorf("reading the status of the server: %w", err)
	}
	return s, nil
}
