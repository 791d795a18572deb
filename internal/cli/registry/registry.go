// Package registry holds the commands that work on the registry of the plane:
// list, push, status and gc.
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
		Short: "Keep charts, bundles and images where no internet is needed",
		Long: `The management plane has an OCI registry of its own. "drover up" starts it, the
charts that ship with Drover are in it from the start, and the manager trusts it:
a HelmChartProxy with its address as repoURL needs neither credentials nor a CA.

Everybody on this machine may read from it. Writing needs a password, which only
the owner of the home can read; "drover registry push" does that by itself, for
other tools see "drover registry status".`,
		Example: `  drover registry list
  drover registry push hello-1.0.0.tgz
  drover registry status      # address, CA, and how others log in`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &homeFlag{}
	cmd.PersistentFlags().StringVar(&f.dir, "home", "", "`directory` that holds all state of the plane (default $DROVER_HOME, or ~/.drover)")
	_ = cmd.MarkPersistentFlagDirname("home")
	cmd.AddCommand(newList(io, f), newPush(io, f), newStatus(io, f), newCollect(io, f))
	return cmd
}

// homeFlag is --home, the same on every command.
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

// connect is for commands that need the registry to run.
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
