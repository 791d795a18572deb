package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
)

func newPower(io *ui.IO, f *homeFlag) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Change the power state of a server",
		Long: `Shut a server down, restart it, or wait for it to be on again. If a machine has the
server, its device changes its state, and metal remembers that. A server that no
machine has is given to none until "drover server check" has found it on again.

Without a management controller, nothing can turn a server on: press its power
button.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, p := range []*power{
		{state: api.ServerOn, short: "Turn on the machine of a server, once somebody presses its button", result: "waiting for it to boot; press its power button if it is off"},
		{state: api.ServerOff, short: "Shut a server down", question: "This shuts it down.", result: "shutting down"},
		{state: api.ServerReboot, short: "Restart a server", question: "This restarts it.", result: "restarting"},
	} {
		p.io, p.home = io, f
		cmd.AddCommand(p.command())
	}
	return cmd
}

// power is a change of the power state.
type power struct {
	io   *ui.IO
	home *homeFlag
	yes  bool

	state, short string
	// question ends the question that has to be confirmed, if something ends.
	question string
	// result is what happens then.
	result string
}

func (p *power) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:               p.state + " NAME",
		Short:             p.short,
		Example:           "  drover server power " + p.state + " node-1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.home.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), args[0]) },
	}
	if p.question != "" {
		cmd.Flags().BoolVarP(&p.yes, "yes", "y", false, "skip the confirmation")
	}
	return cmd
}

func (p *power) run(ctx context.Context, name string) error {
	c, err := p.home.open()
	if err != nil {
		return err
	}
	var s api.Server
	if err := c.Do(ctx, http.MethodGet, pathOf(name), nil, &s); err != nil {
		return err
	}
	if err := p.confirm(s); err != nil {
		return err
	}
	if err := c.Do(ctx, http.MethodPost, pathOf(name, "power"), api.ServerPower{State: p.state}, &s); err != nil {
		return fmt.Errorf("changing the power of server %q: %w", name, err)
	}
	fmt.Fprintf(p.io.Out, "%s: %s\n", s.Name, p.result)
	return nil
}

// confirm asks for confirmation and names what uses the server.
func (p *power) confirm(s api.Server) error {
	if p.question == "" || p.yes {
		return nil
	}
	use := "no machine uses it"
	if s.User != nil {
		use = "machine " + s.User.Name()
	}
	if !p.io.CanAsk {
		return ui.Usagef("server %s (%s): power %s requires confirmation: use --yes", s.Name, use, p.state)
	}
	sure, err := p.io.Confirm(fmt.Sprintf("Server %s: %s. %s", s.Name, use, p.question))
	if err != nil {
		return err
	}
	if !sure {
		return errors.New("canceled, nothing was changed")
	}
	return nil
}

func newConsole(io *ui.IO, f *homeFlag) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "console NAME",
		Short: "Show what a server logs about its machine",
		Long: `Show the end of the journal of a server over SSH: what provisioned and upgraded it, its
container runtime and its kubelet.`,
		Example:           `  drover server console node-1 --follow`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.open()
			if err != nil {
				return err
			}
			path := pathOf(args[0], "console")
			if follow {
				path += "?follow=true"
			}
			return c.Stream(cmd.Context(), path, io.Out)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing output until interrupted")
	return cmd
}
