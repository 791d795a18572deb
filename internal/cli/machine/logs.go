package machine

import (
	"context"
	"fmt"
	stdio "io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
)

const eventsShown = 1000

func newLogs(io *ui.IO, home *homeFlag) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:               "logs NAME",
		ValidArgsFunction: home.complete,
		Short:             "Show what happened to a machine, and what it wrote to its console",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := home.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := events(cmd.Context(), io.Out, c, d); err != nil {
				return err
			}
			fmt.Fprintln(io.Out)
			err = console(cmd.Context(), io.Out, c, d, follow)
			if client.IsGone(err) {
				fmt.Fprintln(io.Err, "The machine has not written to its console yet.")
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what the machine writes from now on")
	return cmd
}

func newConsole(io *ui.IO, home *homeFlag) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:               "console NAME",
		ValidArgsFunction: home.complete,
		Short:             "Show the console of a machine",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := home.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return console(cmd.Context(), io.Out, c, d, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what the machine writes from now on")
	return cmd
}

func (f *homeFlag) find(ctx context.Context, name string) (*client.Client, api.Device, error) {
	c, err := f.open()
	if err != nil {
		return nil, api.Device{}, err
	}
	d, err := c.FindDevice(ctx, name)
	return c, d, err
}

// events prints what happened, oldest first, and what is wrong now.
func events(ctx context.Context, w stdio.Writer, c *client.Client, d api.Device) error {
	var out api.Events
	if err := c.Do(ctx, http.MethodGet, fmt.Sprintf("/devices/%s/events?per_page=%d", d.ID, eventsShown), nil, &out); err != nil {
		return err
	}
	slices.Reverse(out.Events)
	rows := make([][]string, 0, len(out.Events))
	for _, e := range out.Events {
		rows = append(rows, []string{e.CreatedAt.Local().Format(time.DateTime), e.Type, e.Body})
	}
	if err := ui.Table(w, []string{"TIME", "EVENT", "MESSAGE"}, rows); err != nil {
		return err
	}
	var m metal.Machine
	if err := c.Do(ctx, http.MethodGet, "/drover/v1/devices/"+d.ID, nil, &m); err != nil {
		return err
	}
	if m.Trouble != "" {
		fmt.Fprintf(w, "\nThe machine is not as wanted: %s\n", m.Trouble)
	}
	return nil
}

func console(ctx context.Context, w stdio.Writer, c *client.Client, d api.Device, follow bool) error {
	err := c.Stream(ctx, fmt.Sprintf("/drover/v1/devices/%s/console?follow=%v", d.ID, follow), w)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt is how one stops to follow
	}
	return err
}
