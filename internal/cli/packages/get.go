package packages

import (
	"cmp"
	"fmt"
	stdio "io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func newGet(io *ui.IO) *cobra.Command {
	var o options
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "packages [NAME...]",
		Aliases: []string{"package"},
		Short:   "List the packages on a cluster",
		Long:    `List the packages on a cluster and their state, or only the named ones.`,
		Example: `  drover get packages --cluster dev
  drover get package my-hello --cluster dev -o yaml`,
		ValidArgsFunction: o.completePackage,
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, _, err := o.connectTo(cmd.Context())
			if err != nil {
				return err
			}
			all, err := plane.Packages(cmd.Context(), o.cluster, args...)
			if err != nil {
				return err
			}
			list := &packagesv1.PackageList{TypeMeta: listType("PackageList"), Items: all}
			if len(all) == 0 && output == "" {
				fmt.Fprintf(io.Err, "No packages on cluster %s. Try: drover list packages --cluster %s\n", o.cluster, o.cluster)
				return nil
			}
			return output.Print(io.Out, list, func(w stdio.Writer) error { return packageTable(w, all) })
		},
	}
	o.addCluster(cmd)
	output.AddFlag(cmd)
	return cmd
}

func listType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: packagesv1.GroupVersion.String(), Kind: kind}
}

func packageTable(w stdio.Writer, all []packagesv1.Package) error {
	rows := make([][]string, 0, len(all))
	for _, p := range all {
		rows = append(rows, []string{
			p.Name, p.Spec.PackageName, age(p.CreationTimestamp), cmp.Or(string(p.Status.State), "-"),
			cmp.Or(p.Status.CurrentVersion, "-"), cmp.Or(p.Status.TargetVersion, "-"), p.Status.Detail,
		})
	}
	return ui.Table(w, []string{"NAME", "PACKAGE", "AGE", "STATE", "CURRENTVERSION", "TARGETVERSION", "DETAIL"}, rows)
}

func age(t metav1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

func newGetBundles(io *ui.IO) *cobra.Command {
	var o options
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "packagebundles",
		Aliases: []string{"packagebundle"},
		Short:   "List bundles and the clusters that use them",
		Long: `List the bundles on the management plane, newest first, with their state and the
clusters on which they are active.`,
		Example: `  drover get packagebundles
  drover get packagebundles -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plane, err := o.connect()
			if err != nil {
				return err
			}
			all, err := plane.Bundles(cmd.Context())
			if err != nil {
				return err
			}
			list := struct {
				metav1.TypeMeta `json:",inline"`
				Items           []inspect.BundleUse `json:"items"`
			}{listType("PackageBundleList"), all}
			return output.Print(io.Out, list, func(w stdio.Writer) error {
				rows := make([][]string, 0, len(all))
				for _, b := range all {
					rows = append(rows, []string{
						b.Name, age(b.CreationTimestamp), cmp.Or(string(b.Status.State), "-"), fmt.Sprint(len(b.Spec.Packages)),
						cmp.Or(strings.Join(b.UsedBy, ", "), "-"),
					})
				}
				return ui.Table(w, []string{"NAME", "AGE", "STATE", "PACKAGES", "USED BY"}, rows)
			})
		},
	}
	o.add(cmd)
	output.AddFlag(cmd)
	return cmd
}

func newGetControllers(io *ui.IO) *cobra.Command {
	var o options
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "packagebundlecontrollers",
		Aliases: []string{"packagebundlecontroller", "pbc"},
		Short:   "List the clusters that accept packages and their active bundles",
		Long: `List the clusters that accept packages, the active bundle of each, and whether a
newer bundle is available.`,
		Example: `  drover get packagebundlecontrollers
  drover get pbc -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plane, err := o.connect()
			if err != nil {
				return err
			}
			all, err := plane.BundleControllers(cmd.Context())
			if err != nil {
				return err
			}
			list := &packagesv1.PackageBundleControllerList{TypeMeta: listType("PackageBundleControllerList"), Items: all}
			return output.Print(io.Out, list, func(w stdio.Writer) error {
				rows := make([][]string, 0, len(all))
				for _, c := range all {
					rows = append(rows, []string{c.Name, cmp.Or(c.Spec.ActiveBundle, "-"), cmp.Or(string(c.Status.State), "-"), c.Status.Detail})
				}
				return ui.Table(w, []string{"NAME", "ACTIVEBUNDLE", "STATE", "DETAIL"}, rows)
			})
		},
	}
	o.add(cmd)
	output.AddFlag(cmd)
	return cmd
}
