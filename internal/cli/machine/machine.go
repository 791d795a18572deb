// Package machine holds the commands that look at the machines of a metal:
// list, logs, console and ssh.
package machine

import (
	"cmp"
	"context"
	"fmt"
	stdio "io"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/client"
)

// NewCommand is `drover machine`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "Look at machines and get into them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "metal-home", "", "`directory` of the metal that has the machines (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	_ = cmd.MarkPersistentFlagDirname("metal-home")
	cmd.AddCommand(newList(io, f), newLogs(io, f), newConsole(io, f), newSSH(io, f))
	return cmd
}

type homeFlag struct{ dir string }

func (f *homeFlag) home() (metal.Home, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, metal.DefaultHome()))
	return metal.Home{Dir: dir}, err
}

func (f *homeFlag) open() (*client.Client, error) {
	home, err := f.home()
	if err != nil {
		return nil, err
	}
	return client.Open(home)
}

func newList(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	var tag, project string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List machines",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := home.open()
			if err != nil {
				return err
			}
			filter := url.Values{}
			if tag != "" {
				filter.Set("tag", tag)
			}
			machines, err := list(cmd.Context(), c, filter, project)
			if err != nil {
				return err
			}
			return output.Print(io.Out, machines, func(w stdio.Writer) error { return table(w, machines, time.Now()) })
		},
	}
	cmd.Flags().StringVar(&tag, "tag", "", "only machines with this `tag`")
	cmd.Flags().StringVar(&project, "project", "", "only machines of this project, by `id`")
	output.AddFlag(cmd)
	return cmd
}

func list(ctx context.Context, c *client.Client, filter url.Values, project string) ([]api.Device, error) {
	all, err := c.Devices(ctx, filter)
	if err != nil || project == "" {
		return all, err
	}
	var out []api.Device
	for _, d := range all {
		if filepath.Base(d.Project.Href) == project {
			out = append(out, d)
		}
	}
	return out, nil
}

func table(w stdio.Writer, machines []api.Device, now time.Time) error {
	rows := make([][]string, 0, len(machines))
	for _, d := range machines {
		rows = append(rows, []string{
			d.Hostname, state(d), address(d, true), address(d, false), d.Plan.Slug, d.Metro.Code, d.ID, now.Sub(d.CreatedAt.Time).Round(time.Second).String(),
		})
	}
	return ui.Table(w, []string{"NAME", "STATE", "PUBLIC", "PRIVATE", "PLAN", "METRO", "ID", "AGE"}, rows)
}

// state shows how far a machine is that is not there yet.
func state(d api.Device) string {
	if d.State == metal.StateProvisioning || d.State == metal.StateReinstalling {
		return fmt.Sprintf("%s %d%%", d.State, d.ProvisioningPercentage)
	}
	return d.State
}

func address(d api.Device, public bool) string { //nolint:revive // Which of the two columns.
	for _, a := range d.IPAddresses {
		if a.Management && a.Public == public && a.AddressFamily == 4 {
			return a.Address
		}
	}
	return "-"
}
