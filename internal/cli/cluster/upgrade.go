package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

func newUpgrade(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	cmd := &cobra.Command{
		Use:     "cluster -f FILE",
		Aliases: []string{"clusters"},
		Short:   "Bring a cluster to a new spec",
		Long: `Bring a cluster to a new spec: another version of Kubernetes, more or fewer
machines, or whatever else of the spec may change. Fields that can't change are
refused, all at once, before anything is done. If nothing is to be done, that
takes a moment.

As with create, --kubeconfig leads to the management cluster of a workload
cluster, the phases are printed first, what was done is recorded, and the same
command goes on after an interruption. Workload clusters run on while their
management cluster is upgraded.`,
		Example: `  drover upgrade cluster -f one.yaml --kubeconfig mgmt.kubeconfig
  drover upgrade cluster -f one.yaml -k mgmt.kubeconfig --dry-run     # what would change
  drover upgrade plan cluster -f one.yaml -k mgmt.kubeconfig -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.upgrade(cmd.Context(), args) },
	}
	c.add(cmd)
	c.addLimits(cmd)
	return cmd
}

func (c *change) upgrade(ctx context.Context, args []string) error {
	if err := c.say(); err != nil {
		return err
	}
	config, workload, err := c.read(workflow.Upgrade)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] != config.Cluster.Name {
		return ui.Usagef("the spec in %s is that of cluster %q, not of %q", name(c.file), config.Cluster.Name, args[0])
	}
	if err := spec.Validate(config).Err(); err != nil {
		return fmt.Errorf("%s: %w", name(c.file), err)
	}
	plan, err := c.upgradePlan(ctx, config, workload)
	if err != nil {
		return err
	}
	if err := c.carryOut(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s is as the spec wants it.\n", config.Cluster.Name)
	return nil
}

// upgradePlan is the plan; what it changes is asked for only if nothing else is wanted.
func (c *change) upgradePlan(ctx context.Context, config *spec.Config, workload bool) (*workflow.Plan, error) { //nolint:revive // Which of the two workflows.
	var upgrader interface {
		Differences(context.Context) ([]lifecycle.Difference, error)
		Upgrade() (*workflow.Plan, error)
	}
	var err error
	if workload {
		upgrader, err = c.workload(config)
	} else {
		upgrader, err = c.management(config)
	}
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		if _, err := upgrader.Differences(ctx); err != nil {
			return nil, err
		}
	}
	return upgrader.Upgrade()
}
