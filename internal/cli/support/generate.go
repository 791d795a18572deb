package support

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
)

// without lists the flags of the compatible command that have no effect here, with the reason.
var without = map[string]string{
	"since":            "the end of each log is collected, up to a maximum size",
	"since-time":       "the end of each log is collected, up to a maximum size",
	"bundle-config":    "everything is collected",
	"bundles-manifest": "Drover contains everything that it installs",
	"w-config":         "the management plane stores the kubeconfig of every cluster",
}

// NewGenerateCommand returns `drover generate support-bundle`, the name that existing scripts use.
func NewGenerateCommand(io *ui.IO) *cobra.Command {
	var o options
	var file string
	cmd := o.command(io)
	run := cmd.RunE
	cmd.Short += " (same as drover support-bundle)"
	cmd.Example = `  drover generate support-bundle -f billy.yaml --kubeconfig mgmt.kubeconfig`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for name, why := range without {
			if cmd.Flags().Changed(name) {
				fmt.Fprintf(io.Err, "--%s has no effect: %s.\n", name, why)
			}
		}
		if err := o.useDirectoryOf(file); err != nil {
			return err
		}
		return run(cmd, args)
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with the spec of a cluster; also collect the directory of that cluster, if it exists")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	for name, why := range without {
		cmd.Flags().StringP(name, map[string]string{"w-config": "w"}[name], "", "has no effect: "+why)
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.Flags().Bool("audit-logs", false, "has no effect: the logs of a plane contain them")
	_ = cmd.Flags().MarkHidden("audit-logs")
	return cmd
}

// useDirectoryOf selects the directory that commands create for a cluster, which has its name.
func (o *options) useDirectoryOf(file string) error {
	if file == "" || o.dir != "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the spec: %w", err)
	}
	config, err := spec.Read(text)
	if err != nil {
		return fmt.Errorf("reading the spec in %q: %w", file, err)
	}
	if info, err := os.Stat(config.Cluster.Name); err == nil && info.IsDir() {
		o.dir = config.Cluster.Name
	}
	return nil
}
