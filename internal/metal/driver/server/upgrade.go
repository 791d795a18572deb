package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// minUpgradeDisk is what the programs and images of another version take, twice: as they are sent
// and in the image store.
const minUpgradeDisk = 2 << 30

// Upgrade implements driver.Upgrader. The agent upgrades the server by itself; a connection is only
// needed to begin and to learn the result.
func (d *Driver) Upgrade(ctx context.Context, want driver.Machine, version string) error {
	if want.Server == nil {
		return fmt.Errorf("machine %q has no server", want.ID)
	}
	m := d.machine(want.ID)
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if !m.provisioned() {
		return errors.New("the server is not provisioned yet")
	}
	u, files, err := d.upgradePayload(ctx, want, version)
	if err != nil {
		return err
	}
	work, cancel := m.begin()
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return m.retry(work, func() error { return m.upgradeOnce(work, *want.Server, u, files) })
}

// upgradeOnce does everything over one connection.
func (m *machine) upgradeOnce(ctx context.Context, s driver.Server, u agent.Upgrade, files []blob) error {
	c, err := m.driver.dial(ctx, s)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Send(ctx, m.driver.program, agent.Program); err != nil {
		return err
	}
	status, err := readStatus(ctx, c)
	if err != nil {
		return err
	}
	next, err := decideUpgrade(status, u)
	switch {
	case err != nil:
		return permanent{err}
	case next == upgradeDone:
		return nil
	case next == upgradeSend:
		if err := sendBlobs(ctx, c, files); err != nil {
			return err
		}
	}
	return m.upgradeOn(ctx, c, u)
}

// upgradeOn starts the upgrade, or continues the one that was interrupted, and waits for the
// result.
func (m *machine) upgradeOn(ctx context.Context, c *remote.Client, u agent.Upgrade) error {
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if err := runAgent(ctx, c, "put-upgrade", remote.Streams{In: bytes.NewReader(data)}); err != nil {
		return err
	}
	if err := m.follow(ctx, c); err != nil {
		return err
	}
	status, err := readStatus(ctx, c)
	if err != nil {
		return err
	}
	return upgradeResult(status, u)
}

// upgradeStep is what comes next.
type upgradeStep int

const (
	// upgradeSend means that the server needs programs and images first.
	upgradeSend upgradeStep = iota
	// upgradeFollow means that the server is being upgraded.
	upgradeFollow
	// upgradeDone means that the server runs the version.
	upgradeDone
)

// decideUpgrade decides the next step. An error means that the upgrade is impossible.
func decideUpgrade(s agent.Status, u agent.Upgrade) (upgradeStep, error) {
	switch {
	case s.Device != u.Device:
		return 0, fmt.Errorf("the server is no longer this machine: its device is %q", s.Device)
	case s.Phase == agent.Upgrading && s.Upgrade != nil && s.Upgrade.Version != u.Version:
		return 0, fmt.Errorf("the server is being upgraded to Kubernetes %s", s.Upgrade.Version)
	case s.Phase == agent.Upgrading:
		return upgradeFollow, nil
	case s.Phase != agent.Done:
		return 0, errors.New("the server is not provisioned yet")
	case s.Kubernetes == u.Version && s.KubeletActive:
		return upgradeDone, nil
	case s.FreeDiskBytes < minUpgradeDisk:
		return 0, fmt.Errorf("%.1f GiB are free on the server, and %d GiB are needed: free some space", float64(s.FreeDiskBytes)/(1<<30), minUpgradeDisk>>30)
	}
	return upgradeSend, nil
}

// upgradeResult returns why an upgrade that was started has not succeeded.
func upgradeResult(s agent.Status, u agent.Upgrade) error {
	switch {
	case s.Upgrade == nil || s.Upgrade.Version != u.Version || s.Phase != agent.Done:
		return errors.New("the server has not finished the upgrade")
	case s.Upgrade.Error != "":
		return permanent{errors.New(s.Upgrade.Error)}
	case s.Kubernetes != u.Version:
		return permanent{fmt.Errorf("the kubelet has version %q after the upgrade", s.Kubernetes)}
	}
	return nil
}
