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

// wait is the flag that makes a command stay until packages are as they should be.
type wait struct{ limit time.Duration }

func (w *wait) add(cmd *cobra.Command, until string) {
	cmd.Flags().DurationVar(&w.limit, "wait", 0, "how long to wait until "+until)
}

// goal is a state of packages that somebody waits for.
type goal struct {
	plane   *inspect.Plane
	cluster string
	// names are the packages that count, all of the cluster if there are none.
	names []string
	// reached says of one package that it is as it should be. What is gone is not asked.
	reached func(*packagesv1.Package) bool
	// gone says that the packages should not be there.
	gone bool
}

// await tells each change until the goal is reached.
func (w *wait) await(ctx context.Context, io *ui.IO, g goal) error {
	if w.limit == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	said, open := map[string]string{}, []string(nil)
	err := g.plane.AwaitPackages(limited, g.cluster, func(all []packagesv1.Package) bool {
		open = g.open(all)
		for i := range all {
			if line := stateLine(&all[i]); g.counts(all[i].Name) && said[all[i].Name] != line {
				said[all[i].Name] = line
				fmt.Fprintf(io.Err, "%s: %s\n", all[i].Name, line)
			}
		}
		return len(open) == 0
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("not done after %s: %s", w.limit, strings.Join(open, "; "))
	}
	return err
}

func (g *goal) counts(name string) bool { return len(g.names) == 0 || slices.Contains(g.names, name) }

// open is what is still to be waited for, in words.
func (g *goal) open(all []packagesv1.Package) []string {
	var out []string
	there := map[string]bool{}
	for i := range all {
		name := all[i].Name
		there[name] = true
		if g.counts(name) && (g.gone || !g.reached(&all[i])) {
			out = append(out, fmt.Sprintf("%s is %s", name, stateLine(&all[i])))
		}
	}
	for _, name := range g.names {
		if !there[name] && !g.gone {
			out = append(out, name+" is not there")
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
		state = "not looked at yet"
	}
	if p.Status.Detail != "" {
		return state + ": " + p.Status.Detail
	}
	return state
}

// isInstalled says that a package is installed as its newest spec wants it.
func isInstalled(p *packagesv1.Package) bool {
	return p.Status.State == packagesv1.StateInstalled && p.Status.ObservedGeneration == p.Generation && p.DeletionTimestamp.IsZero()
}
