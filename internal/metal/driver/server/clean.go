package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// maxLeft bounds how much of what is left a message lists.
const maxLeft = 500

// Clean implements driver.Inspector. It undoes exactly what an agent of Drover has recorded: data
// of others stays, and is found by the next inspection.
func (d *Driver) Clean(ctx context.Context, s driver.Server) error {
	c, err := d.dial(ctx, s)
	if err != nil {
		return err
	}
	defer c.Close()
	has, err := c.Output(ctx, "test -d "+agent.StateDir+" && echo yes || true")
	if err != nil {
		return err
	}
	if strings.TrimSpace(has) != "" {
		if err := d.cleanWithAgent(ctx, c, s); err != nil {
			return err
		}
	}
	// The agent can't remove itself while it reports.
	return c.Root(ctx, "rm -rf "+node.ServerDir+" "+agent.StateDir, remote.Streams{})
}

func (d *Driver) cleanWithAgent(ctx context.Context, c *remote.Client, s driver.Server) error {
	if _, err := c.Send(ctx, d.program, agent.Program); err != nil {
		return err
	}
	// The units hold the lock of the agent while they work.
	const stop = "for unit in " + agent.Unit + " " + agent.UpgradeUnit + "; do systemctl disable --now $unit || true; done"
	if err := c.Root(ctx, stop, remote.Streams{}); err != nil {
		return err
	}
	out, err := c.Output(ctx, agent.Program+" "+agent.Command+" clean")
	if err != nil {
		return fmt.Errorf("restoring: %w", err)
	}
	var result agent.Cleaned
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		return fmt.Errorf("reading the result of the restoration: %w", err)
	}
	if len(result.Left) == 0 {
		return nil
	}
	return &driver.UncleanError{Problem: driver.Problem{
		Check:   "clean",
		Message: "after the restoration there is still " + text.TruncateTo(strings.Join(result.Left, ", "), maxLeft),
		Remedy:  "remove that, or reboot the server, then run `drover server reset " + s.Name + "`",
	}}
}
