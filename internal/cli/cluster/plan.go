package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// component is one line of an upgrade plan.
type component struct {
	Name       string `json:"name"`
	OldVersion string `json:"oldVersion"`
	NewVersion string `json:"newVersion"`
}

// upgradePlan is the JSON of what an upgrade would change.
type upgradePlan struct {
	Components []component            `json:"components"`
	Changes    []lifecycle.Difference `json:"changes"`
	// Machines says how machines get another version of Kubernetes; empty if they keep theirs.
	Machines []upgradedMachines `json:"machines,omitempty"`
	// AddOns are what an upgrade of Kubernetes waits for.
	AddOns []lockstep.AddOn `json:"addOns,omitempty"`
}

// upgradedMachines are the machines of a group.
type upgradedMachines struct {
	Group string `json:"group"`
	// Strategy is RollingUpdate, which replaces them, or InPlace.
	Strategy anywherev1.UpgradeRolloutStrategyType `json:"strategy"`
}

// machinesOf returns how the machines of a cluster are upgraded.
func machinesOf(c *anywherev1.Cluster) []upgradedMachines {
	strategy := func(inPlace bool) anywherev1.UpgradeRolloutStrategyType {
		if inPlace {
			return anywherev1.InPlaceStrategyType
		}
		return anywherev1.RollingUpdateStrategyType
	}
	r := c.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy
	out := []upgradedMachines{{"control plane", strategy(r != nil && r.Type == anywherev1.InPlaceStrategyType)}}
	for _, g := range c.Spec.WorkerNodeGroupConfigurations {
		if ptr.Deref(g.KubernetesVersion, "") == "" {
			r := g.UpgradeRolloutStrategy
			out = append(out, upgradedMachines{g.Name, strategy(r != nil && r.Type == anywherev1.InPlaceStrategyType)})
		}
	}
	return out
}

// planOutput is -o, which also accepts the name that other tools have for a table.
type planOutput struct{ ui.Output }

// Set accepts text for a table.
func (o *planOutput) Set(s string) error {
	if s == "text" {
		o.Output = ""
		return nil
	}
	return o.Output.Set(s)
}

func newPlan(io *ui.IO) *cobra.Command {
	plan := &cobra.Command{
		Use:   "plan",
		Short: "Show what an upgrade would change",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c := &change{io: io}
	var output planOutput
	cluster := &cobra.Command{
		Use:     "cluster -f FILE",
		Aliases: []string{"clusters"},
		Short:   "Show what an upgrade of a cluster would change",
		Long: `Show what an upgrade of a cluster would change: versions first, then each field.
For a new version of Kubernetes, also show whether machines are upgraded in place or
replaced, and the add-ons and packages that it waits for, with the stage in which
each of them is upgraded. Nothing is changed.`,
		Example: `  drover upgrade plan cluster -f one.yaml --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig
  drover upgrade plan cluster -f mgmt.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := c.plan(cmd.Context())
			if err != nil {
				return err
			}
			return output.Print(io.Out, p, func(w stdio.Writer) error { return printUpgradePlan(w, p) })
		},
	}
	c.add(cluster)
	_ = cluster.Flags().MarkHidden("dry-run")
	cluster.Flags().Lookup("output").Value = &output
	plan.AddCommand(cluster)
	return plan
}

func (c *change) plan(ctx context.Context) (*upgradePlan, error) {
	config, err := c.read(lifecycle.Upgrade)
	if err != nil {
		return nil, err
	}
	cluster, err := c.planner(config)
	if err != nil {
		return nil, err
	}
	changes, err := cluster.Differences(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := cluster.Versions(ctx)
	if err != nil {
		return nil, err
	}
	addOns, err := cluster.AddOns(ctx)
	if err != nil {
		return nil, err
	}
	p := &upgradePlan{Components: []component{}, Changes: changes, AddOns: addOns}
	for _, v := range versions {
		if v.From != v.To {
			p.Components = append(p.Components, component{v.Object, v.From, v.To})
		}
		if v.From != v.To && v.Object == "kubernetes" {
			p.Machines = machinesOf(config.Cluster)
		}
	}
	if p.Changes == nil {
		p.Changes = []lifecycle.Difference{}
	}
	return p, nil
}

func printUpgradePlan(w stdio.Writer, p *upgradePlan) error {
	if len(p.Components) == 0 && len(p.Changes) == 0 {
		_, err := fmt.Fprintln(w, "The cluster is up to date.")
		return err
	}
	rows := make([][]string, 0, len(p.Components)+len(p.Changes))
	for _, x := range p.Components {
		rows = append(rows, []string{x.Name, cmp.Or(x.OldVersion, "-"), cmp.Or(x.NewVersion, "-")})
	}
	for _, d := range p.Changes {
		rows = append(rows, []string{d.Object + " " + d.Path, cmp.Or(d.From, "-"), cmp.Or(d.To, "-")})
	}
	if err := ui.Table(w, []string{"NAME", "CURRENT VERSION", "NEXT VERSION"}, rows); err != nil {
		return err
	}
	return errors.Join(printMachines(w, p.Machines), printAddOns(w, p.AddOns))
}

// printMachines prints a line for each strategy.
func printMachines(w stdio.Writer, machines []upgradedMachines) error {
	for _, way := range []struct {
		strategy anywherev1.UpgradeRolloutStrategyType
		text     string
	}{
		{anywherev1.InPlaceStrategyType, "Upgraded in place, one machine at a time"},
		{anywherev1.RollingUpdateStrategyType, "Replaced by new machines"},
	} {
		var groups []string
		for _, m := range machines {
			if m.Strategy == way.strategy {
				groups = append(groups, m.Group)
			}
		}
		if len(groups) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", way.text, strings.Join(groups, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// printAddOns prints what the upgrade waits for.
func printAddOns(w stdio.Writer, addOns []lockstep.AddOn) error {
	if len(addOns) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(addOns))
	for _, a := range addOns {
		rows = append(rows, []string{string(a.Stage), a.Kind, a.Name, cmp.Or(a.Problem, "-")})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return ui.Table(w, []string{"UPGRADED", "KIND", "ADD-ON", "PROBLEM"}, rows)
}
