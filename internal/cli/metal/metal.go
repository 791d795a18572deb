// Package metal holds the commands that run and look after the metal API:
// serve, status, stop, purge, project and token.
package metal

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
)

// NewCommand is `drover metal`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metal",
		Short: "Serve the Packet API in front of machines you own",
		Long: `Metal speaks the Packet (Equinix Metal) HTTP API. Manifests, scripts and clients
that were written for it work against machines of yours. It keeps its own
state, so that devices outlive any management plane.

"drover up" has it run in the background; "serve" runs it in the foreground, for
service managers. Whichever started it, the other commands work on it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "home", "", "`directory` that holds all state of metal (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	_ = cmd.MarkPersistentFlagDirname("home")
	cmd.AddCommand(newServe(io, f), newStatus(io, f), newStop(io, f), newPurge(io, f), newProject(io, f), newToken(io, f))
	return cmd
}

// homeFlag is --home, the same on every command.
type homeFlag struct{ dir string }

func (f *homeFlag) home() (metal.Home, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, metal.DefaultHome()))
	return metal.Home{Dir: dir}, err
}
