package plane

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

type downOptions struct {
	homeFlag
	purge   bool
	timeout time.Duration
}

func newDown(io *ui.IO) *cobra.Command {
	o := &downOptions{}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the management plane",
		Long: `Stop the management plane: the controllers first, then the API server, etcd
last. Nothing is lost; "drover up" goes on where it was.

With --purge the home is removed too, and with it everything the plane knew:
objects, certificates and encryption keys. Take a "drover backup" first if any
of it may be wanted again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.purge, "purge", false, "remove the home and everything in it")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for the components to stop")
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
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	was, err := plane.Shutdown(ctx, home)
	if err != nil {
		return err
	}
	if was {
		fmt.Fprintln(io.Err, "The management plane is stopped.")
	} else {
		fmt.Fprintln(io.Err, "The management plane was not running.")
	}
	if !o.purge {
		return nil
	}
	if err := plane.Purge(home); err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Removed %s.\n", home.Dir)
	return nil
}
