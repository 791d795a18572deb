// Package machine holds the commands that inspect the machines of the metal service: list, logs,
// console and ssh.
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
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// NewCommand is `drover machine`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "Inspect machines and log in to them",
		Long: `Inspect the local or simulated machines of the metal service on this host, and log in
to them.`,
		Example: `  drover machine list`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "metal-home", "", "`directory` with the state of the metal service (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	_ = cmd.MarkPersistentFlagDirname("metal-home")
	cmd.AddCommand(newList(io, f), newLogs(io, f), newConsole(io, f), newSSH(io, f))
	return cmd
}

type homeFlag struct{ dir string }

func (f *homeFlag) home() (metal.Home, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, metal.DefaultHome()))
	return metal.Home{Dir: dir}, err
}

func (f *homeFlag) open() (*admin.Client, error) {
	home, err := f.home()
	if err != nil {
		return nil, err
	}
	return admin.Open(home)
}

// complete completes the names of machines.
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
	devices, err := c.Devices(ctx, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(devices))
	for _, d := range devices {
		out = append(out, cobra.CompletionWithDesc(d.Hostname, d.State))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// listed is a machine with the cluster that it was provisioned for.
type listed struct {
	api.Device
	Owner *tags.Owner `json:"owner,omitempty"`
}

// filter selects machines; empty fields match all.
type filter struct{ tag, project, cluster string }

func newList(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	var want filter
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List machines",
		Long: `List machines with their state, their addresses, and the cluster that each was
provisioned for according to its tags.`,
		Example: `  drover machine list
  drover machine list --cluster default/one
  drover machine list --tag blue -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := home.open()
			if err != nil {
				return err
			}
			machines, err := want.list(cmd.Context(), c)
			if err != nil {
				return err
			}
			return output.Print(io.Out, machines, func(w stdio.Writer) error { return table(w, machines, time.Now()) })
		},
	}
	cmd.Flags().StringVar(&want.tag, "tag", "", "only machines with this `tag`")
	cmd.Flags().StringVar(&want.project, "project", "", "only machines of the project with this `ID`")
	cmd.Flags().StringVar(&want.cluster, "cluster", "", "only machines of the cluster with this `name` or namespace/name")
	output.AddFlag(cmd)
	return cmd
}

func (f filter) list(ctx context.Context, c *admin.Client) ([]listed, error) {
	query := url.Values{}
	if f.tag != "" {
		query.Set("tag", f.tag)
	}
	all, err := c.Devices(ctx, query)
	if err != nil {
		return nil, err
	}
	out := []listed{}
	for _, d := range all {
		m := listed{Device: d}
		if owner := tags.OwnerOf(d.Tags); owner != (tags.Owner{}) {
			m.Owner = &owner
		}
		if f.matches(m) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (f filter) matches(m listed) bool {
	if f.project != "" && filepath.Base(m.Project.Href) != f.project {
		return false
	}
	return f.cluster == "" || m.Owner != nil && (f.cluster == m.Owner.Cluster || f.cluster == m.Owner.ClusterName())
}

func table(w stdio.Writer, machines []listed, now time.Time) error {
	rows := make([][]string, 0, len(machines))
	for _, m := range machines {
		d, cluster := m.Device, "-"
		if m.Owner != nil {
			cluster = m.Owner.ClusterName()
		}
		rows = append(rows, []string{
			d.Hostname, state(d), cluster, address(d, true), address(d, false), d.Plan.Slug, d.Metro.Code, d.ID, now.Sub(d.CreatedAt.Time).Round(time.Second).String(),
		})
	}
	return ui.Table(w, []string{"NAME", "STATE", "CLUSTER", "PUBLIC", "PRIVATE", "PLAN", "METRO", "ID", "AGE"}, rows)
}

// state returns the state, with the progress of provisioning.
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
