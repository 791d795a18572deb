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
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// PurgeOptions say what a purge needs to know.
type PurgeOptions struct {
	Home metal.Home
	// Yes means that the user was asked already.
	Yes     bool
	Timeout time.Duration
}

func newPurge(io *ui.IO, home *homeFlag) *cobra.Command {
	var o PurgeOptions
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete all machines, stop metal and remove its home",
		Long: `Delete the machines of all projects, wait until they are gone, stop metal and
remove its home with all projects, addresses and tokens. Clusters on these
machines are lost.

It asks first, unless told --yes. It may be interrupted and run again.`,
		Args: cobra.NoArgs,
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

// AddFlags puts what a user may decide on a command.
func (o *PurgeOptions) AddFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait for machines to go")
}

// Confirm asks the user, and names what would be lost.
func (o *PurgeOptions) Confirm(ctx context.Context, io *ui.IO) error {
	if o.Yes || !o.exists() {
		return nil
	}
	loss, err := o.loss(ctx)
	if err != nil {
		return err
	}
	if !io.CanAsk {
		return fmt.Errorf("%s would be removed with %s, and there is nobody to ask: say --yes if that is wanted", o.Home.Dir, loss)
	}
	sure, err := io.Confirm(fmt.Sprintf("This removes %s with %s.", o.Home.Dir, loss))
	if err != nil {
		return err
	}
	if !sure {
		return errors.New("nothing was removed")
	}
	return nil
}

// Run purges, and says what it did.
func (o *PurgeOptions) Run(ctx context.Context, io *ui.IO) error {
	if !o.exists() {
		fmt.Fprintf(io.Err, "There is no metal in %s.\n", o.Home.Dir)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := service.Purge(ctx, o.Home); err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Metal is stopped, its machines are gone. Removed %s.\n", o.Home.Dir)
	return nil
}

func (o *PurgeOptions) exists() bool {
	_, err := o.Home.ReadEndpoint()
	return err == nil || o.Home.LastDriver() != ""
}

// loss says which machines there are. One that does not run cannot be asked.
func (o *PurgeOptions) loss(ctx context.Context) (string, error) {
	if _, running := service.Running(ctx, o.Home); !running {
		return "the machines that it has", nil
	}
	c, err := client.Open(o.Home)
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
		if name := inspect.OwnerOf(d.Tags).ClusterName(); name != "" {
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
