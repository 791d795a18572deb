package metal

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/service"
)

func newStop(io *ui.IO, home *homeFlag) *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop the metal service",
		Long: `Stop the metal service and wait until it has exited. Local machines keep running;
the next start finds them and finishes machines that were being provisioned.
Simulated machines end with the service.`,
		Example: `  drover metal stop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.home()
			if err != nil {
				return err
			}
			return Stop(cmd.Context(), io, h)
		},
	}
}

// Stop stops the metal service and reports the result.
func Stop(ctx context.Context, io *ui.IO, h metal.Home) error {
	was, err := service.Stop(ctx, h)
	switch {
	case err != nil:
		return err
	case was:
		fmt.Fprintln(io.Err, "Stopped the metal service. Local machines keep running; start it again with `drover up`.")
	default:
		fmt.Fprintln(io.Err, "The metal service was not running.")
	}
	return nil
}
