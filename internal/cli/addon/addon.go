// Package addon holds the commands about add-ons: list, status, diff, history, rollback and resume. They parse and print; package view does
// the work.
package addon

import (
	"context"

	"github.com/spf13/cobra"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect/addons"
)

const long = `See and change what runs on every cluster: charts and manifests that a
HelmChartProxy puts there.

  drover addon diff -f cni.yaml             # what would this change, and where?
  drover kubectl apply -f cni.yaml
  drover addon status cni --wait 10m        # is it there, on all clusters?
  drover addon history cni                  # what was it before?
  drover addon rollback cni                 # back to that, on all clusters

The management plane is that of --kubeconfig, of $KUBECONFIG, or the one in
$DROVER_HOME.`

// NewCommand is "drover addon".
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "addon",
		Aliases: []string{"addons"},
		Short:   "See what runs on every cluster, and change it",
		Long:    long,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &options{}
	o.plane.Add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the add-on (default: wherever it is)")
	_ = cmd.MarkPersistentFlagFilename("kubeconfig")
	cmd.AddCommand(newList(io, o), newStatus(io, o), newDiff(io, o), newHistory(io, o), newRollback(io, o), newResume(io, o))
	return cmd
}

// options are the same for all commands.
type options struct {
	plane     management.Flags
	namespace string
}

func (o *options) connect() (*view.Plane, error) {
	config, err := o.plane.Config()
	if err != nil {
		return nil, err
	}
	return view.Connect(config)
}

// find connects and finds the add-on of that name.
func (o *options) find(ctx context.Context, name string) (*view.Plane, *addonsv1.HelmChartProxy, error) {
	plane, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	hcp, err := plane.Find(ctx, o.namespace, name)
	return plane, hcp, err
}

// complete offers the names of add-ons to a shell.
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
	all, err := plane.Charts(ctx, o.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for _, hcp := range all {
		out = append(out, cobra.CompletionWithDesc(hcp.Name, hcp.Spec.ChartName+" in "+hcp.Namespace))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeCluster offers the clusters that the add-on of the first argument is on.
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
	status, err := plane.Status(ctx, hcp)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(status.Clusters))
	for _, c := range status.Clusters {
		out = append(out, cobra.CompletionWithDesc(c.Cluster, c.Status))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
