package cluster

import (
	"fmt"
	stdio "io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func newEvents(io *ui.IO) *cobra.Command {
	var l view
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Show the timeline of a cluster",
		Long: `Show the timeline of a cluster: how long each stage took until the cluster was ready,
then the conditions and events of its objects in order. Conditions have the time of
their last change, and events are kept for an hour.`,
		Example: `  drover events cluster one
  drover events cluster one -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: l.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := l.connect()
			if err != nil {
				return err
			}
			found, err := plane.Find(cmd.Context(), l.namespace, args[0])
			if err != nil {
				return err
			}
			timeline, err := plane.Timeline(cmd.Context(), found)
			if err != nil {
				return err
			}
			return l.output.Print(io.Out, timeline, func(w stdio.Writer) error { return printTimeline(w, timeline) })
		},
	}
	l.add(cmd)
	return cmd
}

func printTimeline(w stdio.Writer, t inspect.Timeline) error {
	var rows [][]string
	for _, s := range t.Stages {
		rows = append(rows, []string{s.Name, s.At.UTC().Format(time.TimeOnly), seconds(s.Seconds)})
	}
	if err := ui.Table(w, []string{"STAGE", "AT", "TOOK"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	rows = rows[:0]
	for _, e := range t.Entries {
		mark := ""
		if e.Warning {
			mark = "! "
		}
		rows = append(rows, []string{fmt.Sprintf("%+.0fs", e.Seconds), e.Object, mark + e.What})
	}
	return ui.Table(w, []string{"SECONDS", "OBJECT", "WHAT"}, rows)
}
