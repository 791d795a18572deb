package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

func newUpgrade(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	cmd := &cobra.Command{
		Use:     "cluster -f FILE",
		Aliases: []string{"clusters"},
		Short:   "Upgrade a cluster to a new spec",
		Long: `Upgrade a cluster to a new spec: another version of Kubernetes, more or fewer
machines, or any other field that may change. Changes of other fields are rejected,
all at once, before anything is changed.

As with create, --kubeconfig names the kubeconfig of a workload cluster's management
cluster, the phases are printed first, progress is recorded, and the same command
resumes after an interruption. For a management cluster, --kubeconfig names the
cluster's own, unless the command runs in the directory where the cluster was created.

A new version of Kubernetes waits for add-ons and packages that must be upgraded before
the control plane or before the workers; "drover upgrade plan cluster" lists them.
Workload clusters keep running while their management cluster is upgraded.`,
		Example: `  # Show what would change
  drover upgrade cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig --dry-run

  # Upgrade a workload cluster
  drover upgrade cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig

  # Continue although an add-on doesn't become ready for the new version of Kubernetes
  drover upgrade cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig --skip-add-on-wait

  # Upgrade a management cluster, and Drover on it
  drover upgrade cluster -f mgmt.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.upgrade(cmd.Context(), args) },
	}
	c.add(cmd)
	c.addLimits(cmd)
	cmd.Flags().BoolVar(&c.skipAddOnWait, "skip-add-on-wait", false, "upgrade Kubernetes without waiting until add-ons are ready for the new version")
	return cmd
}

func (c *change) upgrade(ctx context.Context, args []string) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	config, err := c.read(lifecycle.Upgrade)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] != config.Cluster.Name {
		return ui.Usagef("%s is the spec of cluster %q, not of %q", name(c.file), config.Cluster.Name, args[0])
	}
	if err := spec.Validate(config).Err(); err != nil {
		return fmt.Errorf("%s: %w", name(c.file), err)
	}
	if c.skipAddOnWait {
		skipAddOnWait(config.Cluster)
	}
	plan, err := c.upgradePlan(ctx, config)
	if err != nil {
		return err
	}
	if err := c.execute(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s is up to date.\n", config.Cluster.Name)
	return nil
}

// skipAddOnWait makes the upgrade to the version in the spec, and no later one, continue without
// waiting for add-ons.
func skipAddOnWait(c *anywherev1.Cluster) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[anywherev1.SkipAddOnWaitAnnotation] = c.Spec.KubernetesVersion
}

// upgradePlan returns the plan. For a dry run it includes what each phase changes.
func (c *change) upgradePlan(ctx context.Context, config *spec.Config) (*phase.Plan, error) {
	cluster, err := c.planner(config)
	if err != nil {
		return nil, err
	}
	if c.dryRun {
		if _, err := cluster.Differences(ctx); err != nil {
			return nil, err
		}
	}
	return cluster.Upgrade()
}
