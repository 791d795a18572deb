package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

func newRenew(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	cmd := &cobra.Command{
		Use:     "certificates [NAME | -f FILE]",
		Aliases: []string{"certificate", "certs"},
		Short:   "Renew the certificates of a cluster's machines",
		Long: `Renew the certificates of external etcd and of the control plane, by replacing their
machines one at a time. The cluster stays available: etcd keeps its quorum, and with
several control plane machines so does the API server.

Certificates are valid for a year and renewed automatically: those of external etcd
after two thirds of that time, those of the control plane 60 days before they expire.
Use this command to renew them now, for example because a key leaked. Those of CAs stay
the same, so old certificates remain valid until they expire.

The phases are printed first, progress is recorded, and the same command resumes after
an interruption. Interrupting it doesn't stop the manager.`,
		Example: `  # Renew all certificates of a workload cluster
  drover renew certificates -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig

  # Renew those of a management cluster
  drover renew certificates -f mgmt.yaml

  # Renew only those of external etcd
  drover renew certificates one -c etcd`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.renew(cmd.Context(), args) },
	}
	c.add(cmd)
	c.addLimits(cmd)
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "`namespace` of the cluster (default: search all)")
	cmd.Flags().StringVarP(&c.component, "component", "c", "", "`component` to renew: etcd (external) or control-plane (default: both)")
	_ = cmd.RegisterFlagCompletionFunc("component", cobra.FixedCompletions([]string{string(lifecycle.Etcd), string(lifecycle.ControlPlane)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *change) renew(ctx context.Context, args []string) error {
	components, err := componentsOf(c.component)
	if err != nil {
		return err
	}
	if len(args) > 0 && c.file != "" {
		return ui.Usagef("specify either the NAME of the cluster or its spec with -f, not both")
	}
	if err := c.checkFlags(); err != nil {
		return err
	}
	config, err := c.toRenew(ctx, args)
	if err != nil {
		return err
	}
	planner, err := c.planner(config)
	if err != nil {
		return err
	}
	plan, err := planner.Renew(components)
	if err != nil {
		return err
	}
	if err := c.execute(ctx, plan); err != nil || c.dryRun || c.output != "" {
		return err
	}
	fmt.Fprintf(c.io.Err, "\nThe machines of cluster %s have new certificates.\n", config.Cluster.Name)
	return nil
}

// componentsOf returns the components that a flag names; none means all.
func componentsOf(flag string) ([]lifecycle.Component, error) {
	if flag == "" {
		return nil, nil
	}
	for _, known := range lifecycle.Components() {
		if string(known) == flag {
			return []lifecycle.Component{known}, nil
		}
	}
	return nil, ui.Usagef("--component %q: unknown component; use %s or %s", flag, lifecycle.Etcd, lifecycle.ControlPlane)
}

// toRenew returns the cluster of a name or a file: its spec, or the configuration with which other
// tools reach machines by SSH, which only names it.
func (c *change) toRenew(ctx context.Context, args []string) (*spec.Config, error) {
	if len(args) > 0 {
		return c.toDelete(ctx, args[0]) // An existing cluster is found the same way.
	}
	data, err := contents(c.io, c.file)
	if err != nil {
		return nil, err
	}
	var other struct{ Kind, ClusterName string }
	if err := yaml.Unmarshal(data, &other); err == nil && other.Kind == "" && other.ClusterName != "" {
		fmt.Fprintf(c.io.Err, "Of %s only clusterName has an effect: machines are replaced, not reached by SSH.\n", name(c.file))
		return c.toDelete(ctx, other.ClusterName)
	}
	return c.parse(lifecycle.Delete, data, name(c.file))
}
