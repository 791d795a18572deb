package plane

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	metalcli "github.com/drover-dev/drover/internal/cli/metal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

// purgeTimeout is how long machines may take to go.
const purgeTimeout = 5 * time.Minute

type downOptions struct {
	homeFlag
	purge   bool
	timeout time.Duration
	metal   bool
	yes     bool
}

func newDown(io *ui.IO) *cobra.Command {
	o := &downOptions{}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the embedded plane",
		Long: `Stop the embedded plane: the controllers first, then the API server, then etcd.
All state is kept; "drover up" starts the plane again.

With --purge the home is deleted: objects, certificates, encryption keys and the
content of the registry. Run "drover backup" first if you may need them again; a
backup doesn't hold the content of the registry.

Metal and its machines keep running, because other planes may use them and
clusters run without a plane. --metal stops metal too, and --purge --metal
deletes it with all its machines, like "drover metal purge".`,
		Example: `  drover down
  drover down --purge --metal    # delete everything, after a confirmation`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.purge, "purge", false, "delete the home and everything in it")
	cmd.Flags().BoolVar(&o.metal, "metal", false, "stop metal too; with --purge, delete it with all its machines")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --purge --metal, skip the confirmation")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "time to wait for the components to stop")
	return cmd
}

func (o *downOptions) run(ctx context.Context, io *ui.IO) error {
	home, err := o.home()
	if err != nil {
		return err
	}
	if err := home.Check(); err != nil {
		return err
	}
	machines, err := o.machines(ctx, io)
	if err != nil {
		return err
	}
	if err := o.stop(ctx, io, home); err != nil {
		return err
	}
	if o.purge {
		if err := plane.Purge(home); err != nil {
			return err
		}
		fmt.Fprintf(io.Err, "Deleted %s.\n", home.Dir)
	}
	return machines()
}

func (o *downOptions) stop(ctx context.Context, io *ui.IO, home plane.Home) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	was, err := plane.Shutdown(ctx, home)
	if err != nil {
		return err
	}
	if was {
		fmt.Fprintln(io.Err, "Stopped the embedded plane.")
	} else {
		fmt.Fprintln(io.Err, "The embedded plane was not running.")
	}
	return nil
}

// machines asks for confirmation if required, and returns what to do with metal once the plane,
// which could order machines again, has stopped.
func (o *downOptions) machines(ctx context.Context, io *ui.IO) (func() error, error) {
	home, err := metalHome()
	if err != nil {
		return nil, err
	}
	switch {
	case o.metal && o.purge:
		purge := metalcli.PurgeOptions{Home: home, Yes: o.yes, Timeout: purgeTimeout}
		return func() error { return purge.Run(ctx, io) }, purge.Confirm(ctx, io)
	case o.metal:
		return func() error { return metalcli.Stop(ctx, io, home) }, nil
	default:
		return func() error { printMetalRuns(ctx, io); return nil }, nil
	}
}
