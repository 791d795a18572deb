package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-dev/drover/internal/cli/ui"
)

// Rotation is the part of `drover encryption rotate` that is about a cluster.
type Rotation struct{ change *change }

// NewRotation adds the flags about a cluster to the command.
func NewRotation(io *ui.IO, cmd *cobra.Command) *Rotation {
	r := &Rotation{&change{io: io}}
	r.change.add(cmd)
	r.change.addLimits(cmd)
	cmd.Flags().StringVarP(&r.change.namespace, "namespace", "n", "", "`namespace` of the cluster (default: search all)")
	return r
}

// Requested reports whether the arguments or flags name a cluster. It rejects flags that have no
// effect without one.
func (r *Rotation) Requested(args []string) (bool, error) {
	if len(args) > 0 || r.change.file != "" {
		return true, nil
	}
	var err error
	r.change.cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "help" && err == nil {
			err = ui.Usagef("--%s is about the key of a cluster: specify its NAME, or its spec with -f", f.Name)
		}
	})
	return false, err
}

// Run rotates the key of the cluster that the arguments or flags name.
func (r *Rotation) Run(ctx context.Context, args []string) error {
	c, cluster := r.change, ""
	if len(args) > 0 {
		cluster = args[0]
	}
	if cluster != "" && c.file != "" {
		return ui.Usagef("specify either the NAME of the cluster or its spec with -f, not both")
	}
	if err := c.checkFlags(); err != nil {
		return err
	}
	config, err := c.toDelete(ctx, cluster) // An existing cluster is found the same way.
	if err != nil {
		return err
	}
	planner, err := c.planner(config)
	if err != nil {
		return err
	}
	plan, err := planner.Rotate()
	if err != nil {
		return err
	}
	if err := c.execute(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s encrypts its Secrets with a new key.\n", config.Cluster.Name)
	return nil
}
