package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

func newAdd(io *ui.IO, f *homeFlag) *cobra.Command {
	s := &spec{}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a server to the inventory and check it",
		Long: `Add a server to the inventory and check it, as "drover server check" does. The host
key that it presents first is pinned. Passwords are encrypted and never shown again.`,
		Example: `  drover server add node-1 --ssh admin@192.168.1.11 --identity-file ~/.ssh/id_ed25519
  drover server add node-2 --ssh root@10.0.0.5:2222 --ssh-agent --bastion jump@bastion.example.com --label rack=a`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e := inventory.Entry{Spec: inventory.Spec{Name: strings.ToLower(args[0])}}
			if err := s.apply(cmd, io, &e); err != nil {
				return err
			}
			c, err := f.open()
			if err != nil {
				return err
			}
			return add(cmd.Context(), io, c, e)
		},
	}
	s.addFlags(cmd)
	_ = cmd.MarkFlagRequired("ssh")
	return cmd
}

func add(ctx context.Context, io *ui.IO, c *admin.Client, e inventory.Entry) error {
	var out api.ServerImportResult
	if err := c.Do(ctx, http.MethodPost, serversPath, api.ServerImport{Servers: []inventory.Entry{e}, New: true}, &out); err != nil {
		return fmt.Errorf("adding server %q: %w", e.Name, err)
	}
	if len(out.Problems) > 0 {
		var all []error
		for _, p := range out.Problems {
			all = append(all, errors.New(p.Message))
		}
		return ui.Usage(fmt.Errorf("adding server %q: %w", e.Name, errors.Join(all...)))
	}
	var s api.Server
	if err := c.Do(ctx, http.MethodPost, pathOf(e.Name, "check"), nil, &s); err != nil {
		return fmt.Errorf("checking server %q: %w", e.Name, err)
	}
	return printResult(io, s)
}

func newEdit(io *ui.IO, f *homeFlag) *cobra.Command {
	s := &spec{}
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Change what the inventory says about a server",
		Long: `Change what the inventory says about a server. Flags that you leave out change
nothing; an empty value removes a setting. While a machine uses the server, only its
labels, its keys and its disk can change.`,
		Example: `  drover server edit node-1 --plan c3.small.x86
  drover server edit node-1 --host-key ''    # after a new installation: pin the next key`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.change(cmd.Context(), io, args[0], func(e *inventory.Entry) error { return s.apply(cmd, io, e) })
		},
	}
	s.addFlags(cmd)
	return cmd
}

func newDrain(io *ui.IO, f *homeFlag) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Give a server to no new machine",
		Long: `Keep a server out of use: it is given to no new machine. A machine that uses it stays
until its cluster or you delete it. --undo makes the server available again.`,
		Example: `  drover server drain node-1
  drover server drain node-1 --undo`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.change(cmd.Context(), io, args[0], func(e *inventory.Entry) error {
				e.Drained = !undo
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "make the server available again")
	return cmd
}

// change reads a server, changes it and writes it back.
func (f *homeFlag) change(ctx context.Context, io *ui.IO, name string, edit func(*inventory.Entry) error) error {
	c, err := f.open()
	if err != nil {
		return err
	}
	var s api.Server
	if err := c.Do(ctx, http.MethodGet, pathOf(name), nil, &s); err != nil {
		return err
	}
	e := inventory.Entry{Spec: s.Spec}
	if err := edit(&e); err != nil {
		return err
	}
	if err := c.Do(ctx, http.MethodPut, pathOf(name), e, &s); err != nil {
		return fmt.Errorf("changing server %q: %w", name, err)
	}
	fmt.Fprintf(io.Out, "%s changed\n", s.Name)
	return nil
}
