// Package kubeconfig implements `drover kubeconfig`, which hands out the kubeconfigs of clusters.
package kubeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
)

type options struct {
	plane     management.Flags
	namespace string
	output    string
	merge     bool
	context   string
	wait      time.Duration
}

// NewCommand returns `drover kubeconfig`.
func NewCommand(io *ui.IO) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Get the kubeconfig of a cluster",
		Long: `Print the kubeconfig of a cluster, write it to a file, or merge it into an
existing kubeconfig. Merging keeps the entries of other clusters.

The management plane is the one of --kubeconfig, $KUBECONFIG or $DROVER_HOME, in
this order.`,
		Example: `  drover kubeconfig one > one.kubeconfig
  drover kubeconfig one --wait 5m -o one.kubeconfig
  drover kubeconfig one --merge                      # into ~/.kube/config
  drover kubeconfig one -n team-a --merge --context team-a-one`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	f := cmd.Flags()
	o.plane.Add(f)
	f.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the cluster (default: all namespaces)")
	f.StringVarP(&o.output, "output", "o", "", "write the kubeconfig to this `file`, readable only by its owner")
	f.BoolVar(&o.merge, "merge", false, "merge the kubeconfig into the file of --output, or into ~/.kube/config")
	f.StringVar(&o.context, "context", "", "`name` of the context, the cluster and the user in the kubeconfig (default: the names that Cluster API uses)")
	f.DurationVar(&o.wait, "wait", 0, "how long to wait for the API server of a new cluster")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.MarkFlagFilename("output")
	return cmd
}

func (o *options) run(ctx context.Context, io *ui.IO, name string) error {
	cfg, err := o.plane.Config()
	if err != nil {
		return err
	}
	plane, err := inspect.Connect(cfg)
	if err != nil {
		return err
	}
	from, err := plane.KubeconfigSource(ctx, o.namespace, name)
	if own := o.plane.Namespace(); apierrors.IsForbidden(err) && o.namespace == "" && own != "" {
		from, err = plane.KubeconfigSource(ctx, own, name) // The user may not list all namespaces.
	}
	if err != nil {
		return err
	}
	data, err := o.fetch(ctx, io, from)
	if err != nil {
		return err
	}
	origin := kubeconfig.Origin{Plane: cfg.Host, Namespace: from.Namespace, Cluster: name}
	k, err := kubeconfig.Parse(data, origin, o.context)
	if err != nil {
		return err
	}
	return o.deliver(ctx, io, k)
}

// fetch reads the kubeconfig, waiting for it if --wait says so.
func (o *options) fetch(ctx context.Context, io *ui.IO, from *inspect.KubeconfigSource) ([]byte, error) {
	if o.wait == 0 {
		data, err := from.Read(ctx)
		var early *inspect.NotInitializedError
		if errors.As(err, &early) {
			err = fmt.Errorf("%w; wait for it with --wait 5m", err)
		}
		return data, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	return from.Await(ctx, func(waiting string) {
		fmt.Fprintf(io.Err, "Waiting for cluster %s: %s\n", from.ObjectKey, waiting)
	})
}

// deliver prints, writes or merges the kubeconfig.
func (o *options) deliver(ctx context.Context, io *ui.IO, k *kubeconfig.Kubeconfig) error {
	switch {
	case o.merge:
		path := cmp.Or(o.output, clientcmd.RecommendedHomeFile)
		if err := k.Merge(ctx, path); err != nil {
			return err
		}
		fmt.Fprintf(io.Err, "Merged into %s. Try:\n\n  kubectl --kubeconfig %s --context %s get nodes\n", path, path, k.Context)
		return nil
	case o.output != "":
		err := k.Write(o.output)
		if taken := new(kubeconfig.TakenError); errors.As(err, &taken) {
			return fmt.Errorf("%w, or add to it with --merge", err)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(io.Err, "Wrote %s. Try:\n\n  drover kubectl --kubeconfig %s get nodes\n", o.output, o.output)
		return nil
	default:
		data, err := k.Encode()
		if err != nil {
			return err
		}
		_, err = io.Out.Write(data)
		return err
	}
}

// complete completes names of clusters in a shell.
func (o *options) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	cfg, err := o.plane.Config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	plane, err := inspect.Connect(cfg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := plane.CAPIClusters(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return o.completions(all), cobra.ShellCompDirectiveNoFileComp
}

func (o *options) completions(all []inspect.CAPICluster) []cobra.Completion {
	var out []cobra.Completion
	for _, c := range all {
		if o.namespace == "" || c.Namespace == o.namespace {
			out = append(out, cobra.CompletionWithDesc(c.Name, c.Phase+" in "+c.Namespace))
		}
	}
	return out
}
