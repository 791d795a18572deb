package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/plane"
)

// handover holds the flags of commands that give clusters to another management plane.
type handover struct {
	change

	with []string
	from string
}

// addHandover adds the flags of both commands.
func (h *handover) addHandover(cmd *cobra.Command, kubeconfig string) {
	h.cmd = cmd
	f := cmd.Flags()
	f.StringVarP(&h.kubeconfig, "kubeconfig", "k", "", kubeconfig)
	f.StringVarP(&h.namespace, "namespace", "n", "", "`namespace` of the cluster (default: search all)")
	f.BoolVar(&h.dryRun, "dry-run", false, "print the phases and what each would change, and stop")
	f.DurationVar(&h.controlPlane, "wait-timeout", machineTimeout, "timeout of the clusters on their new management plane")
	_ = cmd.MarkFlagFilename("kubeconfig")
	h.output.AddFlag(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context(), h.source, h.namespace)
	}
}

// source connects to the management plane that a cluster leaves.
func (h *handover) source() (*inspect.Plane, error) {
	flags := management.Flags{Kubeconfig: h.kubeconfig}
	if h.from != "" {
		flags.Kubeconfig = h.from
	}
	config, err := flags.Config()
	if err != nil {
		return nil, err
	}
	return inspect.Connect(config)
}

// again returns the command line that resumes an interrupted run.
func (h *handover) again() string {
	words := []string{h.retryCommand()}
	if h.from != "" {
		words = append(words, "--from", h.from)
	}
	if h.namespace != "" {
		words = append(words, "--namespace", h.namespace)
	}
	if len(h.with) > 0 {
		words = append(words, "--with", strings.Join(h.with, ","))
	}
	return strings.Join(words, " ")
}

func (h *handover) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace, Name: name}
}

func newPromote(io *ui.IO) *cobra.Command {
	h := &handover{change: change{io: io}}
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Turn a workload cluster into a management cluster",
		Long: `Turn a workload cluster into a management cluster: install Drover on it and move its
objects there, with its credentials, add-ons, packages and audit records. No machine
is replaced, and the cluster keeps running. --with moves other workload clusters of
the same management plane along.

Requires an administrator of the management plane, which must have the same version of
Drover. Users of the clusters need new kubeconfigs of the new management cluster: see
"drover create user". Clusters in Git have to be disconnected first.

Progress is recorded, and the same command resumes after an interruption. Clusters are
paused while they move, so that never more than one management plane acts on them.`,
		Example: `  # Turn cluster one into a management cluster
  drover promote cluster one --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig

  # Let it manage two others, too
  drover promote cluster one --with two,three --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return h.promote(cmd.Context(), args[0]) },
	}
	h.addHandover(cmd, "kubeconfig `file` of the current management plane (-mc is an alias)")
	f := cmd.Flags()
	f.StringSliceVar(&h.with, "with", nil, "other workload `clusters` to move along, separated by commas")
	f.StringVar(&h.image, "manager-image", "", "`image` of Drover for machines that are not on this host (default: built from this program)")
	return cmd
}

func (h *handover) promote(ctx context.Context, name string) error {
	options, err := h.options()
	if err != nil {
		return err
	}
	config, from, err := h.plane(&spec.Config{Cluster: &anywherev1.Cluster{}})
	if err != nil {
		return err
	}
	machines, err := filepath.Abs(metal.DefaultHome())
	if err != nil {
		return err
	}
	options.Again, options.Kubeconfig = h.again(), from
	promotion := &lifecycle.Promotion{
		Options: options, Cluster: h.key(name), With: h.with, REST: config, Image: h.image,
		Plane: plane.Home{Dir: plane.DefaultHome()}, Metal: metal.Home{Dir: machines},
	}
	if err := h.execute(ctx, promotion.Plan()); err != nil || h.dryRun || h.output != "" {
		return err
	}
	fmt.Fprintf(h.io.Err, "\nCluster %s is a management cluster. Try:\n\n  drover get clusters --kubeconfig %s\n", name, files(name).Kubeconfig())
	return nil
}

func newAdopt(io *ui.IO) *cobra.Command {
	h := &handover{change: change{io: io}}
	cmd := &cobra.Command{
		Use:     "cluster NAME --from FILE",
		Aliases: []string{"clusters"},
		Short:   "Take a workload cluster over from another management plane",
		Long: `Take a workload cluster over from another management plane: move its objects, with its
credentials, add-ons, packages and audit records. No machine is replaced, and the
cluster keeps running.

Requires an administrator of both management planes, which must have the same version
of Drover. A cluster on machines of a host can be moved only between management planes
that use the same metal service. A cluster in Git has to be disconnected first.

Progress is recorded, and the same command resumes after an interruption. The cluster
is paused while it moves, so that never more than one management plane acts on it.`,
		Example: `  # Move cluster one from an embedded plane to a management cluster
  drover adopt cluster one --from ~/.drover/kubeconfig --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return h.adopt(cmd.Context(), args[0]) },
	}
	h.addHandover(cmd, "kubeconfig `file` of the management plane that takes the cluster over (-mc is an alias)")
	cmd.Flags().StringVar(&h.from, "from", "", "kubeconfig `file` of the management plane that the cluster leaves (required)")
	_ = cmd.MarkFlagFilename("from")
	return cmd
}

func (h *handover) adopt(ctx context.Context, name string) error {
	if h.from == "" {
		return ui.Usagef("specify the management plane that the cluster leaves with --from")
	}
	options, err := h.options()
	if err != nil {
		return err
	}
	target, to, err := h.plane(&spec.Config{Cluster: &anywherev1.Cluster{}})
	if err != nil {
		return err
	}
	source, err := (&management.Flags{Kubeconfig: h.from}).Config()
	if err != nil {
		return err
	}
	options.Again, options.Kubeconfig = h.again(), to
	adoption := &lifecycle.Adoption{Options: options, Cluster: h.key(name), From: source, FromFile: h.from, REST: target}
	if err := h.execute(ctx, adoption.Plan()); err != nil || h.dryRun || h.output != "" {
		return err
	}
	fmt.Fprintf(h.io.Err, "\nCluster %s has a new management plane.\n", name)
	return nil
}
