package metal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// actionUpgrade changes the Kubernetes version of a machine in place. It is an extension of the
// API. A project's token is enough for it: unlike running a program, it lets the caller choose
// nothing but a version.
const actionUpgrade = "upgrade"

// Events of upgrades. Drivers report progress between them as upgrade.101 and so on.
const (
	upgradeRequested = "upgrade.200"
	upgradeDone      = "upgrade.201"
	upgradeFailed    = "upgrade.failed"
)

// upgradeDevice records that a device is to run a version of Kubernetes.
func (c *call) upgradeDevice(id, version string) (*reply, error) {
	if _, able := c.driver.(driver.Upgrader); !able {
		return nil, request.Refuse(http.StatusNotImplemented, "The driver cannot upgrade machines in place")
	}
	err := c.change(id, func(tx *store.Tx, d *store.Device) error {
		if err := mayUpgrade(d, version); err != nil {
			return err
		}
		d.Upgrade = &store.Upgrade{Version: version, State: store.UpgradePending, Changed: c.now()}
		return c.addEvents(tx, d, []store.Event{{Type: upgradeRequested, Body: "Upgrade to Kubernetes " + version + " requested", Time: c.now()}})
	})
	if err != nil {
		return nil, notFound(err)
	}
	c.devices.enqueue(id)
	return accepted()
}

// mayUpgrade decides about an upgrade. One that is in progress or was successful has no effect when
// it is requested again; a failed one is tried again.
func mayUpgrade(d *store.Device, version string) error {
	target, err := utilversion.ParseSemantic(version)
	if err != nil || !strings.HasPrefix(version, "v") {
		return request.Refuse(http.StatusUnprocessableEntity, "kubernetes_version %q is not a version such as v1.36.3", text.TruncateTo(version, maxEventType))
	}
	u := d.Upgrade
	switch {
	case u != nil && u.Version == version && u.State != store.UpgradeFailed:
		return errUnchanged
	case u != nil && u.State == store.UpgradePending:
		return request.Refuse(http.StatusUnprocessableEntity, "The device is being upgraded to Kubernetes %s", u.Version)
	case d.State != StateActive:
		return request.Refuse(http.StatusUnprocessableEntity, "Cannot %s a device while it is %s", actionUpgrade, d.State)
	}
	current, err := utilversion.ParseSemantic(tags.KubernetesVersion(d.Tags))
	if err != nil {
		return nil //nolint:nilerr // Not every device is tagged; the driver finds out.
	}
	switch {
	case target.LessThan(current):
		return request.Refuse(http.StatusUnprocessableEntity, "Kubernetes %s is older than %s, which the device runs", version, current)
	case target.Major() != current.Major() || target.Minor() > current.Minor()+1:
		return request.Refuse(http.StatusUnprocessableEntity, "Kubernetes %s is more than one minor version newer than %s, which the device runs", version, current)
	}
	return nil
}

// pendingUpgrade returns the version to upgrade a device to, or "". A machine that is off is
// upgraded when it is on again.
func pendingUpgrade(d *store.Device) string {
	if d.State != StateActive || d.Upgrade == nil || d.Upgrade.State != store.UpgradePending {
		return ""
	}
	return d.Upgrade.Version
}

// maxUpgrades is the number of machines that are upgraded at a time. Each takes disk and CPU of the
// host, and projects may ask for any number.
const maxUpgrades = 4

// upgrades are the upgrades in progress, one for each device. They take minutes, so they don't
// occupy the workers of the controller.
type upgrades struct {
	ctx     context.Context // the life of the process
	running sync.WaitGroup
	turns   chan struct{}

	mu     sync.Mutex
	cancel map[string]context.CancelFunc
}

func (u *upgrades) open(ctx context.Context) {
	u.ctx, u.cancel, u.turns = ctx, map[string]context.CancelFunc{}, make(chan struct{}, maxUpgrades)
}

// start starts the upgrade of a machine unless it is in progress.
func (u *upgrades) start(c *controller, m driver.Machine, version string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancel[m.ID] != nil || u.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(u.ctx)
	u.cancel[m.ID] = cancel
	u.running.Go(func() {
		defer u.end(m.ID)
		select {
		case u.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-u.turns }()
		err := c.upgrade(ctx, m, version)
		if ctx.Err() != nil {
			return // It is resumed, unless the device is removed.
		}
		if err := c.recordUpgrade(m.ID, version, err); err != nil && !errors.Is(err, store.ErrNotFound) {
			c.log.Error("recording an upgrade failed", "device", m.ID, "error", err)
		}
	})
}

// end cancels the upgrade of a device.
func (u *upgrades) end(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if cancel := u.cancel[id]; cancel != nil {
		cancel()
		delete(u.cancel, id)
	}
}

func (c *controller) upgrade(ctx context.Context, m driver.Machine, version string) error {
	upgrader, able := c.driver.(driver.Upgrader)
	if !able {
		return errors.New("the driver cannot upgrade machines in place")
	}
	c.log.Info("upgrading a machine in place", "device", m.ID, "kubernetes", version)
	if err := upgrader.Upgrade(ctx, m, version); err != nil {
		return fmt.Errorf("upgrading device %q to Kubernetes %s: %w", m.ID, version, err)
	}
	return nil
}

// recordUpgrade records the result of an upgrade. The tag follows the version, so that the machine
// has it also after it was reinstalled.
func (c *controller) recordUpgrade(id, version string, failure error) error {
	return c.change(id, func(tx *store.Tx, d *store.Device) error {
		if d.Upgrade == nil || d.Upgrade.Version != version || d.Upgrade.State != store.UpgradePending {
			return errUnchanged
		}
		d.Upgrade.Changed = c.now()
		event := store.Event{Type: upgradeDone, Body: "Upgraded to Kubernetes " + version, Time: c.now()}
		if failure == nil {
			d.Upgrade.State, d.Tags = store.UpgradeSucceeded, tags.WithKubernetesVersion(d.Tags, version)
			return c.addEvents(tx, d, []store.Event{event})
		}
		d.Upgrade.State, d.Upgrade.Message = store.UpgradeFailed, text.TruncateTo(failure.Error(), maxMessage)
		event.Type, event.Body = upgradeFailed, cmp.Or(d.Upgrade.Message, "Upgrade failed")
		return c.addEvents(tx, d, []store.Event{event})
	})
}
