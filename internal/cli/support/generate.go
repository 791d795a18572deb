package support

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
)

// without are the flags of another tool's command that mean nothing here, and why.
var without = map[string]string{
	"since":            "of each log the end is taken, as much as fits",
	"since-time":       "of each log the end is taken, as much as fits",
	"bundle-config":    "all that there is to collect is collected",
	"bundles-manifest": "Drover has all that it installs in itself",
	"w-config":         "the management plane has the kubeconfig of every cluster",
}

// NewGenerateCommand builds the same under the name that another tool has for it: generate support-bundle.
func NewGenerateCommand(io *ui.IO) *cobra.Command {
	var o options
	var file string
	cmd := o.command(io)
	run := cmd.RunE
	cmd.Short += ", as drover support-bundle does"
	cmd.Example = `  drover generate support-bundle -f billy.yaml --kubeconfig mgmt.kubeconfig`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for name, why := range without {
			if cmd.Flags().Changed(name) {
				fmt.Fprintf(io.Err, "--%s has no effect: %s.\n", name, why)
			}
		}
		if err := o.of(file); err != nil {
			return err
		}
		return run(cmd, args)
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with the spec of a cluster, whose directory is taken too if it is there")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	for name, why := range without {
		cmd.Flags().StringP(name, map[string]string{"w-config": "w"}[name], "", "has no effect: "+why)
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.Flags().Bool("audit-logs", false, "has no effect: they are among the logs of a plane")
	_ = cmd.Flags().MarkHidden("audit-logs")
	return cmd
}

// of takes the directory that commands about a cluster left, which has its name.
func (o *options) of(file string) error {
	if file == "" || o.dir != "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the spec: %w", err)
	}
	config, err := spec.Read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if info, err := os.Stat(config.Cluster.Name); err == nil && info.IsDir() {
		o.dir = config.Cluster.Name
	}
	return nil
}
