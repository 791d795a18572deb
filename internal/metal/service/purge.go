package service

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
)

// namesShown is the number of machines that an error names.
const namesShown = 5

// Purge deletes every device of every project, waits until their machines are gone, stops the metal
// service and removes its home. It can be repeated after a failure and succeeds if nothing exists.
func Purge(ctx context.Context, h metal.Home) error {
	if _, err := os.Stat(h.Dir); os.IsNotExist(err) {
		return nil
	}
	held, err := lock(ctx, h)
	if err != nil {
		return err
	}
	defer held.Close()
	if _, err := stop(ctx, h); err != nil {
		return err
	}
	if driver := h.LastDriver(); driver != "" {
		if err := purgeDevices(ctx, h, held, driver); err != nil {
			return err
		}
	}
	release, err := h.Hold()
	if err != nil {
		return err
	}
	defer release()
	return h.Remove()
}

// purgeDevices runs the metal service at an unpublished address, so that a manager that keeps
// creating machines can't reach it. The service removes the network of its machines when it stops.
// If that fails, the home is needed to try again.
func purgeDevices(ctx context.Context, h metal.Home, held *os.File, driver string) error {
	_, exited, err := start(ctx, h, held, "--driver", driver, "--addr", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c, err := admin.Open(h)
	if err != nil {
		return err
	}
	if err := deleteAll(ctx, c); err != nil {
		return err
	}
	if _, err := stop(ctx, h); err != nil {
		return err
	}
	if err := <-exited; err != nil {
		return fmt.Errorf("the metal service failed to clean up: %w: run the command again; the log %s ends with:\n  %s", err, h.LogFile(), tail(h.LogFile()))
	}
	return nil
}

// deleteAll deletes devices until none is left.
func deleteAll(ctx context.Context, c *admin.Client) error {
	asked := map[string]bool{}
	for {
		left, err := c.Devices(ctx, nil)
		if err != nil {
			return fmt.Errorf("listing machines: %w", err)
		}
		if len(left) == 0 {
			return nil
		}
		for _, d := range left {
			if asked[d.ID] {
				continue
			}
			if err := deleteDevice(ctx, c, d); err != nil && !admin.IsNotFound(err) {
				return fmt.Errorf("deleting machine %q: %w", d.Hostname, err)
			}
			asked[d.ID] = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d machines to be deprovisioned (%s): %w: see `drover machine logs NAME`, then run the command again", len(left), names(left), ctx.Err())
		case <-time.After(4 * pollInterval):
		}
	}
}

// deleteDevice also deletes a locked device, since the user requested a purge.
func deleteDevice(ctx context.Context, c *admin.Client, d api.Device) error {
	if d.Locked {
		if err := c.Do(ctx, http.MethodPut, "/devices/"+d.ID, map[string]any{"locked": false}, nil); err != nil {
			return err
		}
	}
	return c.Do(ctx, http.MethodDelete, "/devices/"+d.ID+"?force_delete=true", nil, nil)
}

func names(devices []api.Device) string {
	var out []string
	for _, d := range devices[:min(len(devices), namesShown)] {
		out = append(out, d.Hostname)
	}
	if len(devices) > namesShown {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}
