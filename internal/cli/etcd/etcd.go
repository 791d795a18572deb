// Package etcd implements `drover etcd`: members, defrag, snapshot and restore. It parses flags and
// prints results; packages operate/etcd and workload/etcd do the work.
package etcd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	operate "github.com/drover-dev/drover/internal/operate/etcd"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

const long = `Maintain, save and restore the etcd of a workload cluster, which holds all of its
objects: stacked on control plane machines, or external.

These commands are for administrators of the management plane: they use the keys of
the cluster. The management plane is the one of --kubeconfig, of $KUBECONFIG, or the
embedded plane in $DROVER_HOME. To save the management plane itself, use "drover
backup".`

const example = `  drover etcd members dev
  drover etcd snapshot dev --to /backup --keep 7
  drover etcd snapshots dev --from /backup
  drover etcd restore dev --from /backup
  drover etcd defrag dev`

// NewCommand returns `drover etcd`.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "etcd",
		Short:   "Maintain, save and restore the etcd of workload clusters",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &options{}
	o.plane.Add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the cluster (default: all namespaces)")
	_ = cmd.MarkPersistentFlagFilename("kubeconfig")
	cmd.AddCommand(newMembers(io, o), newDefrag(io, o), newSnapshot(io, o), newSnapshots(io, o), newRestore(io, o))
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

// find connects to the plane and finds the cluster of a name.
func (o *options) find(ctx context.Context, name string) (*inspect.Plane, etcd.Cluster, error) {
	plane, err := o.connect()
	if err != nil {
		return nil, etcd.Cluster{}, err
	}
	cluster, err := operate.Find(ctx, plane, o.namespace, name)
	return plane, cluster, err
}

// open connects to the etcd of a cluster.
func (o *options) open(ctx context.Context, name string) (*etcd.Etcd, error) {
	_, cluster, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return etcd.Open(ctx, cluster)
}

// complete completes names of clusters.
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
	all, err := plane.CAPIClusters(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for _, c := range all {
		out = append(out, cobra.CompletionWithDesc(c.Name, c.Phase+" in "+c.Namespace))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
