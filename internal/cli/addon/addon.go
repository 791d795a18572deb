// Package addon implements `drover addon`: list, status, diff, history, rollback and resume. It
// parses flags and prints results; package view does the work.
package addon

import (
	"context"

	"github.com/spf13/cobra"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

const long = `Manage add-ons: charts and manifests that a HelmChartProxy installs on every cluster
it selects.

The management plane is the one of --kubeconfig, of $KUBECONFIG, or the embedded
plane in $DROVER_HOME.`

const example = `  drover addon diff -f cni.yaml             # preview a change on each cluster
  drover kubectl apply -f cni.yaml
  drover addon status cni --wait 10m        # wait until it is ready everywhere
  drover addon history cni                  # list its revisions
  drover addon rollback cni                 # restore the previous one`

// NewCommand returns `drover addon`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "addon",
		Aliases: []string{"addons"},
		Short:   "Manage add-ons on workload clusters",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &options{}
	o.plane.Add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the add-on (default: all namespaces)")
	_ = cmd.MarkPersistentFlagFilename("kubeconfig")
	cmd.AddCommand(newList(io, o), newStatus(io, o), newDiff(io, o), newHistory(io, o), newRollback(io, o), newResume(io, o))
	return cmd
}

// options are the flags that all commands share.
type options struct {
	plane     management.Flags
	namespace string
}

func (o *options) connect() (*inspect.Plane, error) {
	config, err := o.plane.Config()
	if err != nil {
		return nil, err
	}
	return inspect.Connect(config)
}

// find connects to the plane and returns the add-on with a name.
func (o *options) find(ctx context.Context, name string) (*inspect.Plane, *addonsv1.HelmChartProxy, error) {
	plane, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	hcp, err := plane.FindAddOn(ctx, o.namespace, name)
	return plane, hcp, err
}

// complete completes names of add-ons.
func (o *options) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	plane, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := plane.AddOns(ctx, o.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for _, hcp := range all {
		out = append(out, cobra.CompletionWithDesc(hcp.Name, hcp.Spec.ChartName+" in "+hcp.Namespace))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeCluster completes names of the clusters that the add-on of the first argument is on.
func (o *options) completeCluster(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	plane, hcp, err := o.find(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	status, err := plane.AddOnStatus(ctx, hcp)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(status.Clusters))
	for _, c := range status.Clusters {
		out = append(out, cobra.CompletionWithDesc(c.Cluster, c.Status))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
