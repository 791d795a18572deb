package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

func newCreate(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	var forceCleanup bool
	cmd := &cobra.Command{
		Use:     "cluster -f FILE",
		Aliases: []string{"clusters"},
		Short:   "Create a cluster from a spec",
		Long: `Create a cluster from a spec.

With --kubeconfig, create a workload cluster of the management cluster that the
kubeconfig belongs to. This requires no credentials for machines: the management
cluster has them. Without --kubeconfig, create a management cluster. Drover starts a
bootstrap plane on this machine for that, and deletes it once the cluster manages
itself. The fields management and managementCluster of the spec take precedence.

The command prints its phases first; with --dry-run it prints nothing else. It runs
all preflight checks before it changes anything. It records its progress: after
Ctrl-C, a crash or a lost connection, run the same command again to resume. To remove
what an unfinished creation has created, add --cleanup. This removes nothing of a
cluster whose creation has finished or was started elsewhere.

The cluster's kubeconfig, which only you can read, and its spec with all defaults are
written to a directory of the cluster's name.`,
		Example: `  # Create a management cluster
  drover generate clusterconfig mgmt -p docker > mgmt.yaml
  drover create cluster -f mgmt.yaml

  # Create a workload cluster of it
  drover generate clusterconfig one -p docker --management-cluster mgmt > one.yaml
  drover create cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig

  # Show what would be done
  drover create cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig --dry-run

  # Remove what an unfinished creation has created
  drover create cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig --cleanup`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if forceCleanup {
				return ui.Usagef("--force-cleanup was removed; use --cleanup")
			}
			if c.undo {
				return c.delete(cmd.Context(), "")
			}
			return c.create(cmd.Context())
		},
	}
	c.add(cmd)
	c.addLimits(cmd)
	cmd.Flags().BoolVar(&c.undo, "cleanup", false, "remove what an unfinished creation has created")
	c.addConfirmation(cmd)
	cmd.Flags().BoolVar(&forceCleanup, "force-cleanup", false, "was removed; use --cleanup")
	_ = cmd.Flags().MarkHidden("force-cleanup")
	return cmd
}

func (c *change) create(ctx context.Context) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	config, err := c.read(lifecycle.Create)
	if err != nil {
		return err
	}
	if err := slices.Concat(spec.Validate(config), spec.ValidateNew(config.Cluster), unshipped(config)).Err(); err != nil {
		return fmt.Errorf("%s: %w", name(c.file), err)
	}
	cluster, err := c.planner(config)
	if err != nil {
		return err
	}
	plan, err := cluster.Create()
	if err != nil {
		return err
	}
	if err := c.execute(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s is ready. Try:\n\n  drover kubectl --kubeconfig %s get nodes\n", config.Cluster.Name, files(config.Cluster.Name).Kubeconfig())
	return nil
}
