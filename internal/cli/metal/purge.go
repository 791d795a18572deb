package metal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// PurgeOptions are the options of a purge.
type PurgeOptions struct {
	Home metal.Home
	// Yes skips the confirmation.
	Yes     bool
	Timeout time.Duration
}

func newPurge(io *ui.IO, home *homeFlag) *cobra.Command {
	var o PurgeOptions
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete all machines and the state of the metal service",
		Long: `Delete the machines of all projects, wait until they are deprovisioned, stop the
metal service and remove its home with all projects, addresses and tokens. Clusters
on these machines are lost.

The command asks for confirmation unless --yes is set. If interrupted, run it again.`,
		Example: `  drover metal purge --yes`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Home, err = home.home(); err != nil {
				return err
			}
			if err := o.Confirm(cmd.Context(), io); err != nil {
				return err
			}
			return o.Run(cmd.Context(), io)
		},
	}
	o.AddFlags(cmd)
	return cmd
}

// AddFlags adds the flags of a purge to a command.
func (o *PurgeOptions) AddFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait for machines to be deprovisioned")
}

// Confirm asks the user for confirmation and names what would be lost.
func (o *PurgeOptions) Confirm(ctx context.Context, io *ui.IO) error {
	if o.Yes || !o.exists() {
		return nil
	}
	loss, err := o.loss(ctx)
	if err != nil {
		return err
	}
	if !io.CanAsk {
		return fmt.Errorf("removing %s with %s requires confirmation: use --yes", o.Home.Dir, loss)
	}
	sure, err := io.Confirm(fmt.Sprintf("This deletes %[2]s and removes %[1]s.", o.Home.Dir, loss))
	if err != nil {
		return err
	}
	if !sure {
		return errors.New("canceled, nothing was removed")
	}
	return nil
}

// Run purges and reports the result.
func (o *PurgeOptions) Run(ctx context.Context, io *ui.IO) error {
	if !o.exists() {
		fmt.Fprintf(io.Err, "Nothing to remove: no metal service in %s.\n", o.Home.Dir)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := service.Purge(ctx, o.Home); err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Deleted all machines, stopped the metal service and removed %s.\n", o.Home.Dir)
	return nil
}

func (o *PurgeOptions) exists() bool {
	_, err := o.Home.ReadEndpoint()
	return err == nil || o.Home.LastDriver() != ""
}

// loss describes the machines. A service that is not running can't list them.
func (o *PurgeOptions) loss(ctx context.Context) (string, error) {
	if _, running := service.Running(ctx, o.Home); !running {
		return "its machines", nil
	}
	c, err := admin.Open(o.Home)
	if err != nil {
		return "", err
	}
	devices, err := c.Devices(ctx, nil)
	if err != nil {
		return "", err
	}
	return describe(devices), nil
}

// describe counts machines and names their clusters.
func describe(devices []api.Device) string {
	clusters := map[string]int{}
	for _, d := range devices {
		if name := tags.OwnerOf(d.Tags).ClusterName(); name != "" {
			clusters[name]++
		}
	}
	out := Count(len(devices))
	if len(clusters) == 0 {
		return out
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		parts = append(parts, fmt.Sprintf("%d of cluster %s", clusters[name], name))
	}
	return out + ", " + strings.Join(parts, ", ")
}
