package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// wait is the --wait flag: how long a command waits for its packages.
type wait struct{ limit time.Duration }

func (w *wait) add(cmd *cobra.Command, until string) {
	cmd.Flags().DurationVar(&w.limit, "wait", 0, "wait up to this long until "+until)
}

// goal is the state of packages that a command waits for.
type goal struct {
	plane   *inspect.Plane
	cluster string
	// names are the packages to wait for; empty means all packages of the cluster.
	names []string
	// reached reports whether one package has the wanted state. It is unused if gone is set.
	reached func(*packagesv1.Package) bool
	// gone means that the packages must be deleted.
	gone bool
}

// await prints each change of state until the goal is reached or the time is up.
func (w *wait) await(ctx context.Context, io *ui.IO, g goal) error {
	if w.limit == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	printed, pending := map[string]string{}, []string(nil)
	err := g.plane.AwaitPackages(limited, g.cluster, func(all []packagesv1.Package) bool {
		pending = g.pending(all)
		for i := range all {
			if line := stateLine(&all[i]); g.includes(all[i].Name) && printed[all[i].Name] != line {
				printed[all[i].Name] = line
				fmt.Fprintf(io.Err, "%s: %s\n", all[i].Name, line)
			}
		}
		return len(pending) == 0
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("timed out after %s waiting for packages: %s", w.limit, strings.Join(pending, "; "))
	}
	return err
}

func (g *goal) includes(name string) bool {
	return len(g.names) == 0 || slices.Contains(g.names, name)
}

// pending describes the packages that have not reached the goal.
func (g *goal) pending(all []packagesv1.Package) []string {
	var out []string
	exists := map[string]bool{}
	for i := range all {
		name := all[i].Name
		exists[name] = true
		if g.includes(name) && (g.gone || !g.reached(&all[i])) {
			out = append(out, fmt.Sprintf("%s is %s", name, stateLine(&all[i])))
		}
	}
	for _, name := range g.names {
		if !exists[name] && !g.gone {
			out = append(out, name+" not found")
		}
	}
	return out
}

func stateLine(p *packagesv1.Package) string {
	state := string(p.Status.State)
	if !p.DeletionTimestamp.IsZero() {
		state = string(packagesv1.StateUninstalling)
	}
	if state == "" {
		state = "waiting for the controller"
	}
	if p.Status.Detail != "" {
		return state + ": " + p.Status.Detail
	}
	return state
}

// isInstalled reports whether the newest spec of a package is installed.
func isInstalled(p *packagesv1.Package) bool {
	return p.Status.State == packagesv1.StateInstalled && p.Status.ObservedGeneration == p.Generation && p.DeletionTimestamp.IsZero()
}
