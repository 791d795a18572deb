package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

func newDelete(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	cmd := &cobra.Command{
		Use:     "cluster (NAME | -f FILE)",
		Aliases: []string{"clusters"},
		Short:   "Delete a cluster with its machines",
		Long: `Delete a cluster, with its machines and addresses, and wait until they are gone.
What only this cluster used of the spec goes too.

A workload cluster is deleted on its management cluster, which --kubeconfig leads
to. A management cluster that still has workload clusters is not deleted. Half-made
clusters can be deleted as well.`,
		Example: `  drover delete cluster one --kubeconfig mgmt.kubeconfig
  drover delete cluster -f one.yaml -k mgmt.kubeconfig
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
				return ui.Usagef("which cluster? Give its NAME, or its spec with -f")
			}
			if len(args) == 1 && c.file != "" {
				return ui.Usagef("give the NAME of the cluster or its spec with -f, not both")
			}
			if len(args) == 1 {
				return c.delete(cmd.Context(), args[0])
			}
			return c.delete(cmd.Context(), "")
		},
	}
	c.add(cmd)
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "`namespace` of the cluster of that NAME (default: wherever it is)")
	return cmd
}

// delete deletes the cluster of that name, or that of the spec.
func (c *change) delete(ctx context.Context, cluster string) error {
	if err := c.say(); err != nil {
		return err
	}
	config, workload, err := c.doomed(ctx, cluster)
	if err != nil {
		return err
	}
	plan, err := c.deletePlan(config, workload)
	if err != nil {
		return err
	}
	if err := c.carryOut(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nCluster %s is gone.\n", config.Cluster.Name)
	return nil
}

// doomed is the cluster to delete: as a spec says, as the file that its creation wrote says, or as the plane says.
func (c *change) doomed(ctx context.Context, cluster string) (config *spec.Config, workload bool, err error) {
	if cluster == "" {
		return c.read(workflow.Delete)
	}
	if file := files(cluster).Spec(); c.kubeconfig == "" {
		if data, err := os.ReadFile(file); err == nil {
			return c.parse(workflow.Delete, data, file)
		}
	}
	config, err = c.find(ctx, cluster)
	if err != nil {
		return nil, false, err
	}
	workload, err = isWorkload(config, workflow.Delete, c.kubeconfig)
	return config, workload, err
}

// find reads the cluster from the plane. One that an earlier run has deleted is known by its name only.
func (c *change) find(ctx context.Context, cluster string) (*spec.Config, error) {
	none := &spec.Config{Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: cluster}}}
	rest, _, err := c.plane(none)
	if err != nil {
		return nil, err
	}
	plane, err := inspect.Connect(rest)
	if err != nil {
		return nil, err
	}
	plane.Own = (&management.Flags{Kubeconfig: c.kubeconfig}).Namespace()
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

// unfinished tells whether a deletion of the cluster began here.
func (c *change) unfinished(cluster string) bool {
	command, _, err := files(cluster).Record().Unfinished()
	return err == nil && command != ""
}

func (c *change) deletePlan(config *spec.Config, workload bool) (*workflow.Plan, error) { //nolint:revive // Which of the two workflows.
	if workload {
		w, err := c.workload(config)
		if err != nil {
			return nil, err
		}
		return w.Delete()
	}
	m, err := c.management(config)
	if err != nil {
		return nil, err
	}
	return m.Delete()
}
