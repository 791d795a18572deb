// Package metal holds the commands that run the metal service, which serves the Packet API on this
// host: serve, status, stop, purge, capacity, project and token.
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
		Short: "Serve the Packet API for machines on this host",
		Long: `Serve the Packet (Equinix Metal) HTTP API for machines on this host. Manifests,
scripts and clients written for that API work unchanged. Machines are local (Linux
namespaces that run real clusters), simulated, or servers that you own, which
"drover server" lists. The metal service keeps its own state, so devices outlive any
management plane.

"drover up" runs the service in the background; "serve" runs it in the foreground,
for service managers. The other commands work with either.`,
		Example: `  drover metal status
  drover metal project list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "home", "", "`directory` with the state of the metal service (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	_ = cmd.MarkPersistentFlagDirname("home")
	cmd.AddCommand(newServe(io, f), newStatus(io, f), newStop(io, f), newPurge(io, f), newCapacity(io, f), newProject(io, f), newToken(io, f))
	return cmd
}

// homeFlag is the flag --home that all commands share.
type homeFlag struct{ dir string }

func (f *homeFlag) home() (metal.Home, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, metal.DefaultHome()))
	return metal.Home{Dir: dir}, err
}
