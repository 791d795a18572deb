package cluster

import (
	"fmt"
	stdio "io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
)

// verdict is the JSON of a validation.
type verdict struct {
	Valid      bool             `json:"valid"`
	Violations []spec.Violation `json:"violations"`
	Warnings   []string         `json:"warnings,omitempty"`
	Ignored    []string         `json:"ignored,omitempty"`
}

func newValidate(io *ui.IO) *cobra.Command {
	cmd := validation(io, "validate -f FILE")
	cmd.Short = "Validate the spec of a cluster"
	cmd.Example = `  drover validate -f one.yaml
  drover generate clusterconfig one -p docker | drover validate -f -
  drover validate -f one.yaml -o json`
	return cmd
}

// newExp has the command under the name that the other tool gives it.
func newExp(io *ui.IO) *cobra.Command {
	help := func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	exp := &cobra.Command{Use: "exp", Short: "Commands under their names in eksctl anywhere", Hidden: true, Args: cobra.NoArgs, RunE: help}
	validate := &cobra.Command{Use: "validate", Short: "Validate specs", Args: cobra.NoArgs, RunE: help}
	create := &cobra.Command{Use: "create", Short: "Validate specs of new clusters", Args: cobra.NoArgs, RunE: help}
	cluster := validation(io, "cluster -f FILE")
	cluster.Short = "Validate the spec of a cluster, as drover validate does"
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
		Long: `Validate the spec of a cluster without contacting a management plane. Validation
reports every problem at once, each with its path in the spec and how to fix it.
Checks that need a management plane, such as whether a name is taken, are preflight
checks of create and upgrade.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := contents(io, file)
			if err != nil {
				return err
			}
			v := check(data)
			if err := output.Print(io.Out, v, func(w stdio.Writer) error { return printVerdict(w, file, v) }); err != nil || v.Valid {
				return err
			}
			return ui.Silent(ui.ExitFailed)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with the spec of the cluster, or - for standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	output.AddFlag(cmd)
	return cmd
}

// check validates a spec.
func check(data []byte) verdict {
	config, violations := spec.Check(data, unshipped)
	v := verdict{Valid: len(violations) == 0, Violations: violations, Warnings: config.Warnings, Ignored: config.Ignored}
	if v.Violations == nil {
		v.Violations = []spec.Violation{}
	}
	reported := slices.ContainsFunc(violations, func(x spec.Violation) bool { return x.Path == "spec.kubernetesVersion" })
	if c := config.Cluster; c != nil && c.IsManaged() && !reported {
		if _, err := version.ForMinor(c.Spec.KubernetesVersion); err != nil {
			v.Warnings = append(v.Warnings, fmt.Sprintf("spec.kubernetesVersion: %v; the management plane of the cluster must support it", err))
		}
	}
	return v
}

func printVerdict(w stdio.Writer, file string, v verdict) error {
	for _, warning := range v.Warnings {
		fmt.Fprintf(w, "! %s\n", warning)
	}
	for _, ignored := range v.Ignored {
		fmt.Fprintf(w, "Ignoring %s: not one of Drover's kinds.\n", ignored)
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
	problems := "1 problem"
	if n := len(v.Violations); n > 1 {
		problems = fmt.Sprintf("%d problems", n)
	}
	_, err := fmt.Fprintf(w, "%s is invalid: %s.\n", name(file), problems)
	return err
}

// unshipped rejects a management cluster with a version of Kubernetes that does not ship with this
// Drover. The versions of a workload cluster depend on its management plane.
func unshipped(config *spec.Config) spec.Violations {
	if config.Cluster.IsManaged() {
		return nil
	}
	if _, err := version.ForMinor(config.Cluster.Spec.KubernetesVersion); err != nil {
		return spec.Violations{{Path: "spec.kubernetesVersion", Problem: err.Error(), Remedy: "change the version"}}
	}
	return nil
}
