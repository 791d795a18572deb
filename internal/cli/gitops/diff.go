package gitops

import (
	stdio "io"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	model "github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

// Formats of a comparison.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatJSON     = "json"
)

// comparison is what to compare.
type comparison struct {
	dir, from, format string
	exitCode          bool
}

func newDiff(io *ui.IO) *cobra.Command {
	c := &comparison{dir: "."}
	cmd := &cobra.Command{
		Use:   "diff [DIR]",
		Short: "Show which clusters a commit would change",
		Long: `Show which clusters the files below a directory would change, field by field, compared
with a revision of its checkout or with another directory. Uncommitted files count. The
command contacts no management plane, shows no secrets, and does not need git.

With --exit-code it exits with 1 if there is a difference.`,
		Example: `  drover gitops diff
  drover gitops diff clusters/mgmt --from main -o markdown
  drover gitops diff --from main --exit-code`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.dir = args[0]
			}
			return c.run(io)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.from, "from", "HEAD", "`revision` or directory to compare with")
	f.StringVarP(&c.format, "output", "o", formatText, "output `format`: text, markdown or json")
	f.BoolVar(&c.exitCode, "exit-code", false, "exit with 1 if a cluster would change")
	formats := []string{formatText, formatMarkdown, formatJSON}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *comparison) run(io *ui.IO) error {
	switch c.format {
	case formatText, formatMarkdown, formatJSON:
	default:
		return ui.Usagef("%q is not an output format: use %s, %s or %s", c.format, formatText, formatMarkdown, formatJSON)
	}
	report, err := gitops.Diff(c.dir, c.from)
	if err != nil {
		return err
	}
	if err := c.print(io.Out, report); err != nil {
		return err
	}
	if c.exitCode && len(report.Clusters) > 0 {
		return ui.Silent(ui.ExitFailed)
	}
	return nil
}

func (c *comparison) print(w stdio.Writer, report *model.Report) error {
	text := report.Text()
	switch c.format {
	case formatJSON:
		if report.Clusters == nil {
			report.Clusters = []model.ClusterChange{}
		}
		return ui.Output(formatJSON).Print(w, report, nil)
	case formatMarkdown:
		text = report.Markdown()
	}
	_, err := stdio.WriteString(w, text)
	return err
}
