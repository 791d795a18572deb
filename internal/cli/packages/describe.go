package packages

import (
	"cmp"
	"errors"
	"fmt"
	stdio "io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
)

// described is a package and its events.
type described struct {
	Package packagesv1.Package `json:"package"`
	Events  []corev1.Event     `json:"events"`
}

func newDescribe(io *ui.IO) *cobra.Command {
	var o options
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "packages [NAME...]",
		Aliases: []string{"package"},
		Short:   "Show details of packages on a cluster",
		Long: `Show the source, target, conditions and events of packages, all of a cluster or the
named ones.`,
		Example:           `  drover describe package my-hello --cluster dev`,
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
			if len(found) == 0 {
				return errors.New("no resources found")
			}
			all := make([]described, 0, len(found))
			for i := range found {
				events, err := plane.PackageEvents(cmd.Context(), &found[i])
				if err != nil {
					return err
				}
				all = append(all, described{found[i], events})
			}
			return output.Print(io.Out, all, func(w stdio.Writer) error {
				for i := range all {
					if i > 0 {
						fmt.Fprintln(w)
					}
					if err := all[i].print(w); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	o.addCluster(cmd)
	output.AddFlag(cmd)
	return cmd
}

func (d *described) print(w stdio.Writer) error {
	p := &d.Package
	rows := [][]string{
		{"Package:", p.Spec.PackageName},
		{"State:", stateLine(p)},
		{"Version:", fmt.Sprintf("%s, target %s", cmp.Or(p.Status.CurrentVersion, "none"), cmp.Or(p.Status.TargetVersion, "unknown"))},
	}
	if t := p.Status.Target; t != nil {
		rows = append(rows, []string{"Target:", fmt.Sprintf("release %s in namespace %s of cluster %s/%s", t.Release, t.Namespace, t.ClusterNamespace, t.Cluster)})
	}
	if s := p.Status.Source; s.Repository != "" {
		rows = append(rows, []string{"Source:", fmt.Sprintf("%s@%s", s.Repository, s.Digest)})
	}
	for _, u := range p.Status.UpgradesAvailable {
		rows = append(rows, []string{"Upgrade:", fmt.Sprintf("%s in bundle %s", u.Version, u.Tag)})
	}
	if err := ui.Table(w, []string{"Name:", p.Namespace + "/" + p.Name}, rows); err != nil {
		return err
	}
	rows = rows[:0]
	for _, c := range p.Status.Conditions {
		rows = append(rows, []string{"  " + c.Type, string(c.Status), c.Reason, age(c.LastTransitionTime), c.Message})
	}
	if err := ui.Table(w, []string{"Conditions:", "STATUS", "REASON", "SINCE", "MESSAGE"}, rows); err != nil {
		return err
	}
	rows = rows[:0]
	for _, e := range d.Events {
		rows = append(rows, []string{"  " + e.Type, e.Reason, age(e.LastTimestamp), e.Message})
	}
	if len(rows) == 0 {
		return nil
	}
	return ui.Table(w, []string{"Events:", "REASON", "AGE", "MESSAGE"}, rows)
}
