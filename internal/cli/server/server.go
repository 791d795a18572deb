// Package server holds the commands for the inventory of servers that users own: add, import,
// export, list, describe, check, edit, drain, power, console, reset and remove. They parse and
// print; metal does the work.
package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

const serversPath = "/drover/v1/servers"

// NewCommand is `drover server`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Manage the inventory of servers that you own",
		Long: `Manage the inventory of servers that you own. The metal service with the driver
"server" turns them into machines of clusters, and restores them when the machines
are deleted. A server needs Debian 12, Ubuntu 22.04 or another distribution with
systemd, and an SSH server that this host reaches, directly or through a bastion.

A server is Discovered until a check finds no problem, then Ready. A machine makes it
Provisioning and InUse, and Cleaning when it is deleted. A server that could not be
restored is Failed, and is used again only after "reset".

Only the administrator of the metal service, on this host, may use these commands.`,
		Example: `  drover server add node-1 --ssh admin@192.168.1.11 --identity-file ~/.ssh/id_ed25519
  drover server import hardware.csv --dry-run
  drover server list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "metal-home", "", "`directory` with the state of the metal service (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	_ = cmd.MarkPersistentFlagDirname("metal-home")
	cmd.AddCommand(
		newAdd(io, f), newImport(io, f), newExport(io, f), newList(io, f), newDescribe(io, f), newCheck(io, f), newEdit(io, f), newDrain(io, f), newPower(io, f), newConsole(io, f), newReset(io, f), newRemove(io, f),
	)
	return cmd
}

type homeFlag struct{ dir string }

func (f *homeFlag) open() (*admin.Client, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, metal.DefaultHome()))
	if err != nil {
		return nil, err
	}
	return admin.Open(metal.Home{Dir: dir})
}

func pathOf(name string, verb ...string) string {
	path := serversPath + "/" + url.PathEscape(name)
	for _, v := range verb {
		path += "/" + v
	}
	return path
}

func servers(ctx context.Context, c *admin.Client) ([]api.Server, error) {
	var out api.Servers
	err := c.Do(ctx, http.MethodGet, serversPath, nil, &out)
	return out.Servers, err
}

// complete completes the name of a server.
func (f *homeFlag) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	c, err := f.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := servers(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for _, s := range all {
		out = append(out, cobra.CompletionWithDesc(s.Name, string(s.State)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// onServer calls one route of a server and prints its state.
func (f *homeFlag) onServer(ctx context.Context, io *ui.IO, path string, body any) error {
	c, err := f.open()
	if err != nil {
		return err
	}
	var s api.Server
	if err := c.Do(ctx, http.MethodPost, path, body, &s); err != nil {
		return err
	}
	return printResult(io, s)
}

// printResult prints the state of a server, and fails if there are problems.
func printResult(io *ui.IO, s api.Server) error {
	fmt.Fprintf(io.Out, "%s is %s\n", s.Name, s.State)
	if len(s.Problems) == 0 {
		return nil
	}
	for _, p := range s.Problems {
		fmt.Fprintf(io.Err, "  %s: %s\n    Try: %s\n", p.Check, p.Message, p.Remedy)
	}
	return fmt.Errorf("server %q has %s", s.Name, count(len(s.Problems), "problem"))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func newCheck(io *ui.IO, f *homeFlag) *cobra.Command {
	return &cobra.Command{
		Use:   "check NAME",
		Short: "Check a server and collect its facts",
		Long: `Connect to a server, collect its facts and check everything that a node needs: access,
sudo, operating system, clock, network, disk, memory, swap, kernel, programs, ports and
remnants of other clusters. It changes nothing on the server. Problems are printed
with remedies, and the exit code is 1.`,
		Example:           `  drover server check node-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.onServer(cmd.Context(), io, pathOf(args[0], "check"), nil); err != nil {
				return fmt.Errorf("checking server %q: %w", args[0], err)
			}
			return nil
		},
	}
}

func newReset(io *ui.IO, f *homeFlag) *cobra.Command {
	wipe := inventory.WipeKubernetes
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Restore a server that failed, and check it again",
		Long: `Remove what Drover has installed on a server that no machine uses, verify that, and
check the server again. Data of others is not touched. A server with a machine is
restored by deleting the machine.`,
		Example:           `  drover server reset node-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := inventory.CheckWipe(wipe); err != nil {
				return ui.Usagef("--wipe: %v", err)
			}
			if err := f.onServer(cmd.Context(), io, pathOf(args[0], "reset"), api.ServerReset{Wipe: wipe}); err != nil {
				return fmt.Errorf("resetting server %q: %w", args[0], err)
			}
			return nil
		},
	}
	addWipe(cmd, &wipe, "`data` to remove: kubernetes, which is all that Drover and Kubernetes have put on the server")
	return cmd
}

func addWipe(cmd *cobra.Command, wipe *string, usage string) {
	cmd.Flags().StringVar(wipe, "wipe", *wipe, usage)
	_ = cmd.RegisterFlagCompletionFunc("wipe", cobra.FixedCompletions([]string{inventory.WipeKubernetes}, cobra.ShellCompDirectiveNoFileComp))
}

func newRemove(io *ui.IO, f *homeFlag) *cobra.Command {
	wipe := ""
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from the inventory",
		Long: `Remove a server that no machine uses from the inventory, together with its secrets.
Nothing on the server changes, unless --wipe restores it first, as "drover server reset"
does. If that fails, the server stays in the inventory.`,
		Example: `  drover server remove node-1
  drover server remove node-1 --wipe kubernetes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := inventory.CheckWipe(wipe); err != nil {
				return ui.Usagef("--wipe: %v", err)
			}
			c, err := f.open()
			if err != nil {
				return err
			}
			path := pathOf(args[0])
			if wipe != "" {
				path += "?wipe=" + url.QueryEscape(wipe)
			}
			if err := c.Do(cmd.Context(), http.MethodDelete, path, nil, nil); err != nil {
				return fmt.Errorf("removing server %q: %w", args[0], err)
			}
			fmt.Fprintf(io.Out, "%s removed\n", args[0])
			return nil
		},
	}
	addWipe(cmd, &wipe, "`data` to remove from the server first: kubernetes (default: none)")
	return cmd
}
