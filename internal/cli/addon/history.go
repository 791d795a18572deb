package addon

import (
	"cmp"
	"context"
	"fmt"
	stdio "io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func newHistory(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	var cluster string
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "List the revisions of an add-on",
		Long: `List the revisions of an add-on, newest first: earlier specs of its HelmChartProxy.
With --cluster, list the revisions of its release on that cluster, as recorded there.`,
		Example: `  drover addon history cni
  drover addon history cni --cluster one`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cluster != "" {
				revisions, err := o.releaseHistory(cmd.Context(), args[0], cluster)
				if err != nil {
					return err
				}
				return output.Print(io.Out, revisions, func(w stdio.Writer) error { return printReleases(w, revisions) })
			}
			plane, hcp, err := o.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			revisions, err := plane.AddOnRevisions(cmd.Context(), hcp)
			if err != nil {
				return err
			}
			return output.Print(io.Out, revisions, func(w stdio.Writer) error { return printRevisions(w, revisions) })
		},
	}
	o.addCluster(cmd, &cluster)
	output.AddFlag(cmd)
	return cmd
}

func (o *options) addCluster(cmd *cobra.Command, cluster *string) {
	cmd.Flags().StringVar(cluster, "cluster", "", "only the release on the cluster with this `name`")
	_ = cmd.RegisterFlagCompletionFunc("cluster", o.completeCluster)
}

func (o *options) releaseHistory(ctx context.Context, name, cluster string) ([]tool.Revision, error) {
	plane, hcp, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	release, err := plane.AddOnRelease(ctx, hcp, cluster)
	if err != nil {
		return nil, err
	}
	clusters, err := (&packages{}).clusters(plane)
	if err != nil {
		return nil, err
	}
	defer clusters.Close()
	revisions, err := clusters.History(ctx, release)
	if err != nil {
		return nil, fmt.Errorf("reading revisions from cluster %q: %w", cluster, err)
	}
	return revisions, nil
}

func printRevisions(w stdio.Writer, all []inspect.Revision) error {
	rows := make([][]string, 0, len(all))
	for _, r := range all {
		note := ""
		switch {
		case r.Current:
			note = "current"
		case r.Good:
			note = "last good"
		}
		rows = append(rows, []string{strconv.FormatInt(r.Number, 10), r.Created.Local().Format(time.DateTime), r.Chart, cmp.Or(r.Version, "latest"), r.Digest, note})
	}
	return ui.Table(w, []string{"REVISION", "CREATED", "CHART", "VERSION", "DIGEST", "NOTE"}, rows)
}

func printReleases(w stdio.Writer, all []tool.Revision) error {
	rows := make([][]string, 0, len(all))
	for _, r := range all {
		rows = append(rows, []string{strconv.Itoa(r.Number), r.Updated, r.Status, r.Package, r.Description})
	}
	return ui.Table(w, []string{"REVISION", "UPDATED", "STATUS", "CHART", "DESCRIPTION"}, rows)
}
