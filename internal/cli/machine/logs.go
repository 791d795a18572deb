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
		Short:             "Show the events and the console output of a machine",
		Example:           `  drover machine logs web-1 --follow`,
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
			if admin.IsNotFound(err) {
				fmt.Fprintln(io.Err, "The machine has no console output yet.")
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing output until interrupted")
	return cmd
}

func newConsole(io *ui.IO, home *homeFlag) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:               "console NAME",
		ValidArgsFunction: home.complete,
		Short:             "Show the console output of a machine",
		Example:           `  drover machine console web-1 --follow`,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, d, err := home.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return console(cmd.Context(), io.Out, c, d, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing output until interrupted")
	return cmd
}

func (f *homeFlag) find(ctx context.Context, name string) (*admin.Client, api.Device, error) {
	c, err := f.open()
	if err != nil {
		return nil, api.Device{}, err
	}
	d, err := c.FindDevice(ctx, name)
	return c, d, err
}

// events prints the events, oldest first, and the current problem.
func events(ctx context.Context, w stdio.Writer, c *admin.Client, d api.Device) error {
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
		fmt.Fprintf(w, "\nThe last change failed and will be retried: %s\n", m.Trouble)
	}
	return nil
}

func console(ctx context.Context, w stdio.Writer, c *admin.Client, d api.Device, follow bool) error {
	err := c.Stream(ctx, fmt.Sprintf("/drover/v1/devices/%s/console?follow=%v", d.ID, follow), w)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt is how the user stops following
	}
	return err
}
