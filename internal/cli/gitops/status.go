package gitops

import (
	"cmp"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

func newStatus(io *ui.IO) *cobra.Command {
	var t target
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what Flux has applied from Git",
		Long: `Show each connected repository with its newest commit, and for each cluster the commit
that Flux has applied, problems, changes that are not committed or applied yet, and
removals that wait for "drover gitops confirm".

If you may read the credentials of the repository, the command also fetches the newest
commit and shows in which fields the live objects differ from it.`,
		Example: `  drover gitops status
  drover gitops status -n team-a -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := t.connect()
			if err != nil {
				return err
			}
			all, err := p.Status(cmd.Context(), t.namespace)
			if err != nil {
				return err
			}
			if err := p.Compare(cmd.Context(), all); err != nil {
				return err
			}
			return output.Print(io.Out, all, func(w stdio.Writer) error { return printStatus(w, all) })
		},
	}
	t.add(cmd, "only repositories of this `namespace`")
	output.AddFlag(cmd)
	return cmd
}

func printStatus(w stdio.Writer, all []gitops.Status) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No repository is connected. Connect one with `drover gitops enable`.")
		return err
	}
	var rows [][]string
	for i := range all {
		s := &all[i]
		rows = append(rows, []string{s.Namespace + "/" + s.FluxConfig, shorten(s.Revision), s.State, detail(s)})
		for _, c := range s.Clusters {
			rows = append(rows, []string{"  " + c.Name, shorten(c.Revision), c.State, clusterDetail(&c)})
		}
	}
	return ui.Table(w, []string{"NAME", "REVISION", "STATE", "DETAIL"}, rows)
}

// maxDifferences is how many fields of a cluster are shown.
const maxDifferences = 3

// clusterDetail returns what is wrong with a cluster.
func clusterDetail(c *gitops.ClusterStatus) string {
	var parts []string
	if c.Message != "" {
		parts = append(parts, c.Message)
	}
	if len(c.Changes) > 0 {
		parts = append(parts, "unfinished: "+strings.Join(c.Changes, ", "))
	}
	if c.Missing {
		parts = append(parts, "not in the newest commit")
	}
	if len(c.Differences) > 0 {
		parts = append(parts, "differs from the newest commit: "+differences(c))
	}
	return strings.Join(parts, "; ")
}

// differences lists fields with their live value and that in Git.
func differences(c *gitops.ClusterStatus) string {
	lines := make([]string, 0, maxDifferences+1)
	for _, d := range c.Differences[:min(len(c.Differences), maxDifferences)] {
		line := fmt.Sprintf("%s %s is %s, Git has %s", d.Object, d.Path, cmp.Or(d.Old, "missing"), cmp.Or(d.New, "none"))
		if d.Path == "" {
			line = d.Object + " is missing"
		}
		lines = append(lines, line)
	}
	if more := len(c.Differences) + c.MoreDifferences - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return strings.Join(lines, ", ")
}

// detail returns what is wrong with a repository, or where it is.
func detail(s *gitops.Status) string {
	switch {
	case s.Message != "":
		return s.Message
	case s.CompareError != "":
		return "not compared: " + s.CompareError
	}
	return s.URL
}

// shorten abbreviates the commit in a revision of Flux, such as main@sha1:0123….
func shorten(revision string) string {
	const length = 12
	branch, id, found := strings.Cut(revision, "@sha1:")
	if !found {
		branch, id = "", revision
	} else {
		branch += "@"
	}
	if len(id) > length {
		id = id[:length]
	}
	return branch + id
}
