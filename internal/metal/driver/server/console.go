package server

import (
	"context"
	"fmt"
	"io"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// journal prints the end of what the agent, containerd and the kubelet have logged.
const journal = "journalctl --no-pager --lines 500 --unit " + agent.Unit + " --unit " + agent.UpgradeUnit + " --unit containerd --unit kubelet"

// Console implements driver.Console.
func (d *Driver) Console(ctx context.Context, id string, follow bool) (io.ReadCloser, error) {
	s, found, err := d.inventory.ServerOf(id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("machine %q has no server", id)
	}
	return d.ServerConsole(ctx, s, follow)
}

// ServerConsole implements driver.Operator. The output ends with the reason if it ends early.
func (d *Driver) ServerConsole(ctx context.Context, s driver.Server, follow bool) (io.ReadCloser, error) {
	c, err := d.dial(ctx, s)
	if err != nil {
		return nil, err
	}
	line := journal + map[bool]string{true: " --follow"}[follow]
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.ctx, cancel)
	d.wg.Go(func() {
		defer stop()
		defer c.Close()
		err := c.Root(ctx, line, remote.Streams{Out: w})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(w, "reading the journal of server %q: %v\n", s.Name, err)
		}
		_ = w.Close()
	})
	return &console{r, cancel}, nil
}

// console is output that ends when it is closed.
type console struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (c *console) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}
