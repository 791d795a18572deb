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
		Short: "Stop metal; its machines go on",
		Long: `Stop metal and wait until it is gone. Local machines go on as they are and are
found again at the next start; machines that were being made are finished then.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.home()
			if err != nil {
				return err
			}
			return Stop(cmd.Context(), io, h)
		},
	}
}

// Stop stops metal, and says what it did.
func Stop(ctx context.Context, io *ui.IO, h metal.Home) error {
	was, err := service.Stop(ctx, h)
	switch {
	case err != nil:
		return err
	case was:
		fmt.Fprintln(io.Err, "Metal is stopped; its machines go on. `drover up` starts it again.")
	default:
		fmt.Fprintln(io.Err, "Metal was not running.")
	}
	return nil
}
