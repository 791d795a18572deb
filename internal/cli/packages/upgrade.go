package packages

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func newUpgrade(io *ui.IO) *cobra.Command {
	var o options
	var w wait
	var version string
	cmd := &cobra.Command{
		Use:     "packages",
		Aliases: []string{"package"},
		Short:   "Bring the packages of a cluster to another bundle",
		Long: `Make a cluster use another bundle. Its packages that follow the bundle are upgraded
at once; those with a version of their own stay. An older bundle brings them back.

A bundle that is not here yet is downloaded. "drover get packagebundles" shows those
that are, and "drover bundle diff" what is different in them.`,
		Example: `  drover upgrade packages --cluster billy --bundle-version v1-36-2 --wait 10m`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version == "" {
				return ui.Usagef("--bundle-version is needed: see `drover get packagebundles`")
			}
			if _, err := bundle.ParseName(version); err != nil {
				return ui.Usage(err)
			}
			plane, before, err := o.connectTo(cmd.Context())
			if err != nil {
				return err
			}
			if err := plane.ActivateBundle(cmd.Context(), o.cluster, version); err != nil {
				return err
			}
			if before.Spec.ActiveBundle == version {
				fmt.Fprintf(io.Err, "Bundle %s is active on %s already.\n", version, o.cluster)
			} else {
				fmt.Fprintf(io.Err, "Bundle %s is active on %s, instead of %q.\n", version, o.cluster, before.Spec.ActiveBundle)
			}
			found := &packagesv1.PackageBundle{}
			return w.await(cmd.Context(), io, goal{plane: plane, cluster: o.cluster, reached: func(p *packagesv1.Package) bool {
				if found.Name == "" {
					if active, err := plane.ActiveBundle(cmd.Context(), o.cluster); err == nil {
						found = active
					}
				}
				return isInstalled(p) && hasVersionOf(found, p)
			}})
		},
	}
	o.addCluster(cmd)
	w.add(cmd, "its packages are as the bundle has them")
	cmd.Flags().StringVar(&version, "bundle-version", "", "`name` of the bundle, such as v1-36-2")
	return cmd
}

// hasVersionOf says that what is installed is what a bundle wants.
func hasVersionOf(b *packagesv1.PackageBundle, p *packagesv1.Package) bool {
	found, err := bundle.Find(b, p.Spec.PackageName, p.Spec.PackageVersion)
	return err == nil && strings.EqualFold(found.Version.Name, p.Status.CurrentVersion) && p.Status.Source.Digest == found.Version.Digest
}
