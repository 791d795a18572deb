package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// upgradeTime is how long an upgrade in place takes, in simulated time.
const upgradeTime = 10 * time.Second

var errNoNode = errors.New("the machine has not joined a cluster")

// Upgrade implements driver.Upgrader: the node of the machine gets another version.
func (d *Driver) Upgrade(ctx context.Context, spec driver.Machine, version string) error {
	d.mu.Lock()
	m, found := d.machines[spec.ID]
	on := found && m.power == driver.On
	d.mu.Unlock()
	if !on {
		return fmt.Errorf("simulated machine %q is not running", spec.ID)
	}
	m.log.printf("upgrading to %s", version)
	if !d.wait(ctx, upgradeTime) {
		return ctx.Err()
	}
	if err := d.clusters.upgrade(ctx, spec.ID, version); err != nil {
		return fmt.Errorf("upgrading simulated machine %q: %w", spec.ID, err)
	}
	m.log.printf("upgraded to %s", version)
	return nil
}

// upgrade sets the version of a node, and that of its cluster if it runs the control plane.
func (c *clusters) upgrade(ctx context.Context, id, version string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.nodes[id]
	if !found || !n.on {
		return errNoNode
	}
	n.boot.version = version
	if n.boot.controlPlane {
		n.cluster.version = version
	}
	return modify(ctx, c.client(n.cluster), nodeObject(n), func(o *corev1.Node) {
		o.Status.NodeInfo.KubeletVersion = version
	})
}
