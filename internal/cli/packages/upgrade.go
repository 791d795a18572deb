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
		Short:   "Activate another bundle on a cluster",
		Long: `Activate another bundle on a cluster. Packages without a pinned version are upgraded;
pinned packages stay. To roll back, activate the older bundle.

A missing bundle is downloaded. "drover get packagebundles" lists the bundles on the
management plane, and "drover bundle diff" compares two of them.`,
		Example: `  drover upgrade packages --cluster dev --bundle-version v1-36-2 --wait 10m`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version == "" {
				return ui.Usagef("--bundle-version is required; `drover get packagebundles` lists the bundles")
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
				fmt.Fprintf(io.Err, "Bundle %s is already active on cluster %s.\n", version, o.cluster)
			} else {
				fmt.Fprintf(io.Err, "Activated bundle %s on cluster %s (was %q).\n", version, o.cluster, before.Spec.ActiveBundle)
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
	w.add(cmd, "the packages match the bundle")
	cmd.Flags().StringVar(&version, "bundle-version", "", "`name` of the bundle, such as v1-36-2")
	return cmd
}

// hasVersionOf reports whether the installed version is the one that the bundle selects.
func hasVersionOf(b *packagesv1.PackageBundle, p *packagesv1.Package) bool {
	found, err := bundle.Find(b, p.Spec.PackageName, p.Spec.PackageVersion)
	return err == nil && strings.EqualFold(found.Version.Name, p.Status.CurrentVersion) && p.Status.Source.Digest == found.Version.Digest
}
