// Package version prints the version of this program.
package version

import (
	"fmt"
	stdio "io"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/cli/ui"
)

// NewCommand builds `drover version`.
func NewCommand(io *ui.IO) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Drover, Kubernetes and Cluster API",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version.Get()
			return output.Print(io.Out, v, func(w stdio.Writer) error {
				_, err := fmt.Fprintf(w, "drover %s (Kubernetes %s, Cluster API %s, %s)\n", v.Version, v.Kubernetes, v.ClusterAPI, v.Go)
				return err
			})
		},
	}
	output.AddFlag(cmd)
	return cmd
}
