package registry

import (
	"fmt"
	stdio "io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry"
)

func newCollect(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	age := registry.DefaultAge
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove content that nothing refers to",
		Long: `Remove content that no manifest refers to, which is what stays behind when tags
and manifests are deleted, and uploads that were given up a day ago or more. What
a manifest refers to stays, with a tag or without.

All content is read on the way. What is damaged is of no use to anybody: it is
removed and named, and has to be pushed again.

Nothing is removed unless you run this. Others can go on reading and writing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if age < 0 {
				return ui.Usagef("--older-than must not be negative")
			}
			client, err := home.connect()
			if err != nil {
				return err
			}
			done, err := client.Collect(cmd.Context(), age)
			if err != nil {
				return err
			}
			return output.Print(io.Out, done, func(w stdio.Writer) error { return collectedText(w, done) })
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().DurationVar(&age, "older-than", age, "leave content that is newer: it may belong to a push that has not ended")
	_ = cmd.RegisterFlagCompletionFunc("older-than", cobra.FixedCompletions([]string{"1h", "24h", time.Duration(0).String()}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func collectedText(w stdio.Writer, done registry.Collected) error {
	for _, d := range done.Damaged {
		where := "nothing refers to it"
		if len(d.Repositories) > 0 {
			where = "push again to " + strings.Join(d.Repositories, ", ")
		}
		fmt.Fprintf(w, "Removed %s, which was damaged: %s\n", d.Digest, where)
	}
	_, err := fmt.Fprintf(w, "Removed %d unused pieces of content (%.1f MiB) and %d uploads that were given up.\n", done.Removed, float64(done.Bytes)/(1<<20), done.Uploads)
	return err
}
