package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// Upgrade is the version of Kubernetes that a server gets.
type Upgrade struct {
	Device  string `json:"device"`
	Version string `json:"version"`
	// Kube and Images are the digests of the blobs of the version.
	Kube   string `json:"kube"`
	Images string `json:"images"`
}

// Upgraded is an upgrade that has started and, unless the phase is Upgrading, has ended.
type Upgraded struct {
	Version string `json:"version"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

const (
	upgradeFile = "upgrade.json"
	// nextDir has the programs of the next version until the kubelet runs them.
	nextDir  = node.ServerDir + "/next"
	nextKube = nextDir + "/kube"
	// maxFailure bounds what is recorded about a failure.
	maxFailure = 2000
)

// upgradeUnit upgrades the server, across reboots. Its processes end with it.
const upgradeUnit = `[Unit]
Description=Upgrade Kubernetes on this server
After=network-online.target containerd.service
Wants=network-online.target

[Service]
ExecStart=` + Program + ` server-agent upgrade
Restart=on-failure
RestartSec=1

[Install]
WantedBy=multi-user.target
`

// putUpgrade stores an upgrade from standard input and starts the unit that does it. It can be
// repeated, also while the unit works.
func putUpgrade(ctx context.Context, _ []string) error {
	data, err := io.ReadAll(io.LimitReader(os.Stdin, maxSpec))
	if err != nil {
		return err
	}
	var u Upgrade
	if err := json.Unmarshal(data, &u); err != nil {
		return fmt.Errorf("reading the upgrade: %w", err)
	}
	s, err := readState()
	if err != nil {
		return err
	}
	if s.Phase == Upgrading && s.mayUpgrade(u) == nil {
		return startUpgrade(newEngine()) // It holds the lock.
	}
	a, err := open(ctx)
	if err != nil {
		return err
	}
	defer a.release()
	if err := a.state.mayUpgrade(u); err != nil {
		return err
	}
	if err := errors.Join(writeJSON(upgradeFile, u), a.write(filepath.Join(unitDir, UpgradeUnit), upgradeUnit)); err != nil {
		return err
	}
	a.state.Upgrade = &Upgraded{Version: u.Version}
	if err := a.enter(Upgrading); err != nil {
		return err
	}
	a.release() // For the unit.
	return startUpgrade(a.engine)
}

// mayUpgrade returns why a server in this state can't be upgraded.
func (s State) mayUpgrade(u Upgrade) error {
	switch {
	case s.Device != u.Device:
		return fmt.Errorf("this server is device %q", s.Device)
	case s.Phase == Upgrading && s.Upgrade != nil && s.Upgrade.Version != u.Version:
		return fmt.Errorf("this server is being upgraded to Kubernetes %s", s.Upgrade.Version)
	case s.Phase != Done && s.Phase != Upgrading:
		return errors.New("this server is not provisioned")
	}
	return nil
}

func startUpgrade(e *guest.Engine) error {
	return errors.Join(e.Run("systemctl", "daemon-reload"), e.Run("systemctl", "enable", "--now", UpgradeUnit))
}

// newEngine returns an engine that only runs programs. A process has one engine, since each waits
// for all children.
func newEngine() *guest.Engine { return guest.NewEngine(nil, "", nil) }

// upgrade does what putUpgrade has stored, and records the result. It may be killed at any time and
// starts again then: every step can be repeated.
func upgrade(ctx context.Context, _ []string) error {
	a, err := open(ctx)
	if err != nil {
		return err
	}
	defer a.release()
	if a.state.Phase == Upgrading {
		var u Upgrade
		if err := readJSON(upgradeFile, &u); err != nil {
			return err
		}
		failure := a.upgradeTo(ctx, u)
		if ctx.Err() != nil {
			return ctx.Err() // The server is shutting down.
		}
		if err := a.endUpgrade(u, failure); err != nil {
			return err
		}
	}
	// Not --now: the unit is this process.
	return a.engine.Run("systemctl", "disable", UpgradeUnit)
}

func (a *agent) upgradeTo(ctx context.Context, u Upgrade) error {
	for _, step := range []struct {
		event, message string
		do             func(context.Context, Upgrade) error
	}{
		{"upgrade.101", "Installing the programs of Kubernetes " + u.Version, a.installNext},
		{"upgrade.102", "Importing the images of Kubernetes " + u.Version, a.importNext},
		{"upgrade.103", "Running kubeadm upgrade", a.upgradeNode},
		{"upgrade.104", "Restarting the kubelet", a.switchKubelet},
	} {
		a.engine.Report(guest.Event{Type: step.event, Message: step.message})
		if err := step.do(ctx, u); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(step.message[:1])+step.message[1:], err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// endUpgrade records the result.
func (a *agent) endUpgrade(u Upgrade, failure error) error {
	a.state.Upgrade = &Upgraded{Version: u.Version}
	if failure != nil {
		a.engine.Printf("%v", failure)
		a.state.Upgrade.Error = text.TruncateTo(failure.Error(), maxFailure)
		return a.enter(Done)
	}
	a.spec.Files[node.ServerKubeProgram], a.spec.Images = u.Kube, u.Images
	if err := writeJSON(specFile, a.spec); err != nil {
		return err
	}
	a.try(os.RemoveAll(nextDir))
	a.try(removeOtherBlobs(Blobs, a.spec))
	return a.enter(Done)
}

// removeOtherBlobs removes the blobs that a specification doesn't name.
func removeOtherBlobs(dir string, s Spec) error {
	keep := []string{s.Images}
	for _, digest := range s.Files {
		keep = append(keep, digest)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
