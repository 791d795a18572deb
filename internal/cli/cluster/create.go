package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

func newCreate(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	var forceCleanup bool
	cmd := &cobra.Command{
		Use:     "cluster -f FILE",
		Aliases: []string{"clusters"},
		Short:   "Create a cluster from a spec",
		Long: `Create a cluster from a spec.

With --kubeconfig it is a workload cluster of the management cluster that this
leads to. No credentials of machines are needed for that: the management cluster
has them. Without --kubeconfig it is a management cluster, made with a management
plane on this machine that is removed once the cluster manages itself. A spec that
says which of the two it is (management, managementCluster) decides.

The phases are printed first, and --dry-run prints nothing else. All that can be
checked is checked before anything is changed. What was done is recorded: after
Ctrl-C, a crash or a lost connection the same command goes on where it was, and
--cleanup removes what a creation that did not end well has made.

Files go to a directory of the cluster's name: its kubeconfig, which only you can
read, and its spec with all defaults.`,
		Example: `  drover generate clusterconfig mgmt -p docker > mgmt.yaml
  drover create cluster -f mgmt.yaml                                            # a management cluster
  drover create cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig   # a workload cluster of it
  drover create cluster -f one.yaml -k mgmt.kubeconfig --dry-run                # only say what would be done
  drover create cluster -f one.yaml -k mgmt.kubeconfig --cleanup                # undo what is half made`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if forceCleanup {
				return ui.Usagef("--force-cleanup is no more: --cleanup removes what a creation that did not end well has made")
			}
			if c.undo {
				return c.delete(cmd.Context(), "")
			}
			return c.create(cmd.Context())
		},
	}
	c.add(cmd)
	c.addLimits(cmd)
	cmd.Flags().BoolVar(&c.undo, "cleanup", false, "remove what a creation that did not end well has made")
	cmd.Flags().BoolVar(&forceCleanup, "force-cleanup", false, "is no more: use --cleanup")
	_ = cmd.Flags().MarkHidden("force-cleanup")
	return cmd
}

func (c *change) create(ctx context.Context) error {
	if err := c.say(); err != nil {
		return err
	}
	config, workload, err := c.read(workflow.Create)
	if err != nil {
		return err
	}
	if err := append(spec.Validate(config), unshipped(config)...).Err(); err != nil {
		return fmt.Errorf("%s: %w", name(c.file), err)
	}
	plan, err := c.createPlan(config, workload)
	if err != nil {
		return err
	}
	if err := c.carryOut(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s is ready. Try:\n\n  drover kubectl --kubeconfig %s get nodes\n", config.Cluster.Name, files(config.Cluster.Name).Kubeconfig())
	return nil
}

func (c *change) createPlan(config *spec.Config, workload bool) (*workflow.Plan, error) { //nolint:revive // Which of the two workflows.
	if workload {
		w, err := c.workload(config)
		if err != nil {
			return nil, err
		}
		return w.Create()
	}
	m, err := c.management(config)
	if err != nil {
		return nil, err
	}
	return m.Create()
}
