package cluster

import (
	"fmt"
	stdio "io"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
)

// verdict is what is wrong with a spec, for programs.
type verdict struct {
	Valid      bool             `json:"valid"`
	Violations []spec.Violation `json:"violations"`
	Ignored    []string         `json:"ignored,omitempty"`
}

func newValidate(io *ui.IO) *cobra.Command {
	cmd := validation(io, "validate -f FILE")
	cmd.Short = "Check the spec of a cluster"
	cmd.Example = `  drover validate -f one.yaml
  drover generate clusterconfig one -p docker | drover validate -f -
  drover validate -f one.yaml -o json`
	return cmd
}

// newExp is where other tools have it.
func newExp(io *ui.IO) *cobra.Command {
	help := func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	exp := &cobra.Command{Use: "exp", Short: "Commands under the names that other tools give them", Hidden: true, Args: cobra.NoArgs, RunE: help}
	validate := &cobra.Command{Use: "validate", Short: "Check specs", Args: cobra.NoArgs, RunE: help}
	create := &cobra.Command{Use: "create", Short: "Check specs to create from", Args: cobra.NoArgs, RunE: help}
	cluster := validation(io, "cluster -f FILE")
	cluster.Short = "Check the spec of a cluster, as drover validate does"
	cluster.Flags().StringP("hardware-csv", "z", "", "has no effect: "+without["hardware-csv"])
	create.AddCommand(cluster)
	validate.AddCommand(create)
	exp.AddCommand(validate)
	return exp
}

func validation(io *ui.IO, use string) *cobra.Command {
	var file string
	var output ui.Output
	cmd := &cobra.Command{
		Use: use,
		Long: `Check the spec of a cluster without talking to anybody. All that is wrong is told
at once, each with its place in the file and what to do. What only a management
plane can know, such as names that are taken, is checked by create and upgrade
before they change anything.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := contents(io, file)
			if err != nil {
				return err
			}
			config, violations := spec.Check(data)
			if len(violations) == 0 {
				violations = unshipped(config)
			}
			v := verdict{Valid: len(violations) == 0, Violations: violations}
			if config != nil {
				v.Ignored = config.Ignored
			}
			if v.Violations == nil {
				v.Violations = []spec.Violation{}
			}
			if err := output.Print(io.Out, v, func(w stdio.Writer) error { return printVerdict(w, file, v) }); err != nil || v.Valid {
				return err
			}
			return ui.Silent(ui.ExitFailed)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with the spec of the cluster, - for standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	output.AddFlag(cmd)
	return cmd
}

func printVerdict(w stdio.Writer, file string, v verdict) error {
	for _, ignored := range v.Ignored {
		fmt.Fprintf(w, "%s is none of Drover's kinds and would be left alone.\n", ignored)
	}
	if v.Valid {
		_, err := fmt.Fprintf(w, "%s is valid.\n", name(file))
		return err
	}
	for _, x := range v.Violations {
		fmt.Fprintf(w, "✗ %s: %s\n", x.Path, x.Problem)
		if x.Remedy != "" {
			fmt.Fprintf(w, "    %s\n", x.Remedy)
		}
	}
	things := "1 thing is"
	if n := len(v.Violations); n > 1 {
		things = fmt.Sprintf("%d things are", n)
	}
	_, err := fmt.Fprintf(w, "%s wrong with %s.\n", things, name(file))
	return err
}

// unshipped says that a management cluster asks for a Kubernetes that is not in this Drover, which makes it. Of a workload cluster only its
// management plane knows.
func unshipped(config *spec.Config) spec.Violations {
	if config == nil || config.Cluster == nil || config.Cluster.IsManaged() {
		return nil
	}
	if _, err := version.ForMinor(config.Cluster.Spec.KubernetesVersion); err != nil {
		return spec.Violations{{Path: "spec.kubernetesVersion", Problem: err.Error(), Remedy: "choose one of these"}}
	}
	return nil
}
