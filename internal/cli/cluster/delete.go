package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

func newDelete(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	cmd := &cobra.Command{
		Use:     "cluster (NAME | -f FILE)",
		Aliases: []string{"clusters"},
		Short:   "Delete a cluster with its machines",
		Long: `Delete a cluster with its machines and addresses, and wait until they are gone.
Datacenter and machine configs that no other cluster uses are deleted too.

For a workload cluster, --kubeconfig names the kubeconfig of its management cluster.
For a management cluster, it names the cluster's own, unless the command runs in the
directory where the cluster was created. A management cluster that still has workload
clusters is not deleted. Clusters that were never finished can be deleted as well.

If the cluster is ready, the command asks for confirmation. Without a terminal it
requires --yes.`,
		Example: `  # Delete a workload cluster
  drover delete cluster one --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig

  # Delete it in a script
  drover delete cluster one --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig --yes

  # Show what deleting a management cluster would do
  drover delete cluster mgmt --dry-run`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(cmd.Context(), func() (*inspect.Plane, error) {
				rest, _, err := c.plane(&spec.Config{Cluster: &anywherev1.Cluster{}})
				if err != nil {
					return nil, err
				}
				return inspect.Connect(rest)
			}, c.namespace)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && c.file == "" {
				return ui.Usagef("specify the cluster: its NAME, or its spec with -f")
			}
			if len(args) == 1 && c.file != "" {
				return ui.Usagef("specify either the NAME of the cluster or its spec with -f, not both")
			}
			if len(args) == 1 {
				return c.delete(cmd.Context(), args[0])
			}
			return c.delete(cmd.Context(), "")
		},
	}
	c.add(cmd)
	c.addConfirmation(cmd)
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "`namespace` of the cluster (default: search all)")
	return cmd
}

// delete deletes the cluster of that name, or that of the spec if the name is empty.
func (c *change) delete(ctx context.Context, name string) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	config, err := c.toDelete(ctx, name)
	if err != nil {
		return err
	}
	cluster, err := c.planner(config)
	if err != nil {
		return err
	}
	plan, err := cluster.Delete()
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, cluster, plan); err != nil {
		return err
	}
	if err := c.execute(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s is deleted.\n", config.Cluster.Name)
	return nil
}

func (c *change) addConfirmation(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "delete a cluster that is ready without asking")
}

// confirm asks before a cluster that is ready is deleted, unless an earlier run has asked.
func (c *change) confirm(ctx context.Context, cluster lifecycle.Planner, plan *phase.Plan) error {
	if c.yes || c.dryRun {
		return nil
	}
	if command, _, err := files(plan.Cluster).Record().Unfinished(); err == nil && command == plan.Command {
		return nil
	}
	ready, err := cluster.Ready(ctx)
	if err != nil || !ready {
		return err
	}
	if !c.io.CanAsk {
		return fmt.Errorf("cluster %q is ready, so deleting it requires confirmation: use --yes", plan.Cluster)
	}
	sure, err := c.io.Confirm(fmt.Sprintf("Cluster %q is ready. This deletes it with its machines and all data on them.", plan.Cluster))
	if err == nil && !sure {
		err = errors.New("canceled, nothing was deleted")
	}
	return err
}

// toDelete returns the cluster to delete, from the spec, from the file that its creation wrote, or
// from the management plane.
func (c *change) toDelete(ctx context.Context, cluster string) (*spec.Config, error) {
	if cluster == "" {
		return c.read(lifecycle.Delete)
	}
	if file := files(cluster).Spec(); c.kubeconfig == "" {
		if data, err := os.ReadFile(file); err == nil {
			return c.parse(lifecycle.Delete, data, file)
		}
	}
	config, err := c.find(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return config, c.completeRole(config, lifecycle.Delete)
}

// find reads the cluster from the management plane. One that an earlier run deleted has only a
// name.
func (c *change) find(ctx context.Context, cluster string) (*spec.Config, error) {
	none := &spec.Config{Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: cluster}}}
	plane, err := c.connect(none.Cluster)
	if err != nil {
		return nil, err
	}
	found, err := plane.Find(ctx, c.namespace, cluster)
	var missing *inspect.NotFoundError
	if errors.As(err, &missing) && c.unfinished(cluster) {
		return none, nil
	}
	if err != nil {
		return nil, err
	}
	return &spec.Config{Cluster: found}, nil
}

// unfinished reports whether there is an unfinished run for the cluster in this directory.
func (c *change) unfinished(cluster string) bool {
	command, _, err := files(cluster).Record().Unfinished()
	return err == nil && command != ""
}
