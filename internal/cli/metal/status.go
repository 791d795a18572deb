package metal

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/service"
)

func newStatus(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the metal service",
		Long: `Show whether the metal service is running, its address, and the number of its
machines. The exit code is 3 if it is not running.`,
		Example: `  drover metal status
  drover metal status -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.home()
			if err != nil {
				return err
			}
			return showStatus(cmd.Context(), io, h, output)
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func showStatus(ctx context.Context, io *ui.IO, h metal.Home, output ui.Output) error {
	s, err := service.ReadStatus(ctx, h)
	if errors.Is(err, metal.ErrNoMetal) {
		return &ui.CodeError{Code: ui.ExitNotRunning, Err: err}
	}
	if err != nil {
		return err
	}
	if err := output.Print(io.Out, s, func(w stdio.Writer) error { return statusTable(w, s) }); err != nil {
		return err
	}
	if !s.Running {
		return ui.Silent(ui.ExitNotRunning)
	}
	return nil
}

func statusTable(w stdio.Writer, s service.Status) error {
	fmt.Fprintf(w, "Metal     %s\n", StatusLine(s))
	fmt.Fprintf(w, "API       %s\n", s.URL)
	fmt.Fprintf(w, "Project   %s\n", s.Project)
	fmt.Fprintf(w, "Home      %s\n", s.Home)
	if s.Running {
		fmt.Fprintf(w, "Process   %d\n", s.PID)
	}
	return nil
}

// StatusLine describes the state of the metal service in one line.
func StatusLine(s service.Status) string {
	switch {
	case !s.Running:
		return fmt.Sprintf("Stopped, driver %s (local machines keep running; start it with `drover up`)", s.Driver)
	case s.Machines == nil:
		return fmt.Sprintf("Not responding, driver %s: %s", s.Driver, s.Error)
	default:
		return fmt.Sprintf("Running, driver %s, %s, %d MiB", s.Driver, Count(*s.Machines), s.MemoryBytes>>20)
	}
}

// Count returns the number of machines with its noun.
func Count(n int) string {
	if n == 1 {
		return "1 machine"
	}
	return strconv.Itoa(n) + " machines"
}
