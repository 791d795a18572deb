// Package registry implements the commands for the registry of the embedded plane: list, push,
// status and gc. It parses flags and prints results; package registry does the work.
package registry

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
)

// NewCommand is `drover registry`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Manage the plane's registry of charts, bundles and images",
		Long: `Manage the OCI registry of the management plane. "drover up" starts it with the charts
that ship with Drover. The manager trusts it: a HelmChartProxy with its address as
repoURL requires neither credentials nor a CA.

Everyone on this machine can read from the registry. Writing requires a password that
only the owner of the home can read. "drover registry push" uses it automatically; for
other tools, see "drover registry status".`,
		Example: `  drover registry list
  drover registry push hello-1.0.0.tgz
  drover registry status      # address, CA and login for other tools`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "home", "", "`directory` that holds the state of the plane (default $DROVER_HOME, or ~/.drover)")
	_ = cmd.MarkPersistentFlagDirname("home")
	cmd.AddCommand(newList(io, f), newPush(io, f), newStatus(io, f), newGC(io, f))
	return cmd
}

// homeFlag is --home, which all commands share.
type homeFlag struct{ dir string }

func (f *homeFlag) registry() (plane.Registry, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, plane.DefaultHome()))
	if err != nil {
		return plane.Registry{}, err
	}
	r, err := plane.ReadRegistry(plane.Home{Dir: dir})
	if errors.Is(err, plane.ErrNoPlane) {
		return r, fmt.Errorf("%w: run `drover up` to create one", err)
	}
	return r, err
}

// connect returns a client of the registry, which must be running.
func (f *homeFlag) connect() (*registry.Client, error) {
	r, err := f.registry()
	if err != nil {
		return nil, err
	}
	if r.State == plane.Stopped {
		return nil, plane.ErrNotRunning
	}
	return registry.Connect(registry.Access{URL: r.URL, CAFile: r.CAFile, PasswordFile: r.PasswordFile})
}
