// Package kubeconfig hands out the kubeconfigs of workload clusters.
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
	"github.com/drover-dev/drover/internal/operate/inspect/fleet"
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

// NewCommand is `drover kubeconfig`.
func NewCommand(io *ui.IO) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Get the kubeconfig of a cluster",
		Long: `Print the kubeconfig of a cluster, write it to a file, or merge it into one that
you have. Merging keeps everything that is there for other clusters.

The management plane is that of --kubeconfig, of $KUBECONFIG, or the one in
$DROVER_HOME.`,
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
	f.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the cluster (default: wherever it is)")
	f.StringVarP(&o.output, "output", "o", "", "write to this `file`, which only its owner can read")
	f.BoolVar(&o.merge, "merge", false, "merge into the file of --output, or into ~/.kube/config")
	f.StringVar(&o.context, "context", "", "`name` of the context, the cluster and the user in the kubeconfig (default: as Cluster API names them)")
	f.DurationVar(&o.wait, "wait", 0, "how long to wait for a cluster that has no API server yet")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.MarkFlagFilename("output")
	return cmd
}

func (o *options) run(ctx context.Context, io *ui.IO, name string) error {
	cfg, err := o.plane.Config()
	if err != nil {
		return err
	}
	from, err := find(ctx, cfg, o.namespace, name)
	if own := o.plane.Namespace(); apierrors.IsForbidden(err) && o.namespace == "" && own != "" {
		from, err = find(ctx, cfg, own, name) // Who may not look everywhere looks at home.
	}
	if err != nil {
		return err
	}
	data, err := o.fetch(ctx, io, from)
	if err != nil {
		return err
	}
	origin := kubeconfig.Origin{Plane: cfg.Host, Namespace: from.namespace, Cluster: name}
	k, err := kubeconfig.Parse(data, origin, o.context)
	if err != nil {
		return err
	}
	return o.deliver(ctx, io, k)
}

func (o *options) fetch(ctx context.Context, io *ui.IO, from *source) ([]byte, error) {
	if o.wait == 0 {
		data, err := from.get(ctx)
		var bare *fleet.NotInitializedError
		var described *inspect.NotInitializedError
		if errors.As(err, &bare) || errors.As(err, &described) {
			err = fmt.Errorf("%w: wait for it with --wait 5m", err)
		}
		return data, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	return from.await(ctx, func(waiting string) {
		fmt.Fprintf(io.Err, "Waiting for cluster %s: %s\n", from.key, cmp.Or(waiting, "nothing is known yet"))
	})
}

// deliver puts the kubeconfig where it was asked for.
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

// complete offers the names of clusters to a shell.
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
	clusters, err := fleet.Connect(cfg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := clusters.List(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, c := range all {
		if o.namespace == "" || c.Namespace == o.namespace {
			out = append(out, cobra.CompletionWithDesc(c.Name, c.Phase+" in "+c.Namespace))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
