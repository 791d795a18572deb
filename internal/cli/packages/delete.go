package packages

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
)

func newDelete(io *ui.IO) *cobra.Command {
	var o options
	var w wait
	cmd := &cobra.Command{
		Use:     "packages NAME...",
		Aliases: []string{"package"},
		Short:   "Delete packages from a cluster",
		Long: `Delete packages and uninstall them from their cluster. A package that was created as
a dependency is deleted with the last package that depends on it.

If one of the names doesn't exist, nothing is deleted.`,
		Example:           `  drover delete package my-hello --cluster dev --wait 2m`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: o.completePackage,
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, _, err := o.connectTo(cmd.Context())
			if err != nil {
				return err
			}
			found, err := plane.Packages(cmd.Context(), o.cluster, args...)
			if err != nil {
				return err
			}
			if err := plane.DeletePackages(cmd.Context(), found); err != nil {
				return err
			}
			for _, p := range found {
				fmt.Fprintf(io.Err, "Uninstalling package %s from cluster %s\n", p.Name, o.cluster)
			}
			return w.await(cmd.Context(), io, goal{plane: plane, cluster: o.cluster, names: args, gone: true})
		},
	}
	o.addCluster(cmd)
	w.add(cmd, "the packages are uninstalled")
	return cmd
}
