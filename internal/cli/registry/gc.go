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

func newGC(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	age := registry.DefaultAge
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete unreferenced content",
		Long: `Delete content that no manifest refers to, and uploads that were abandoned at least a
day ago. Content of untagged manifests is kept.

The command also verifies all content. It deletes and lists damaged content, which you
have to push again.

Content is deleted only when you run this command. The registry stays available.`,
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
	cmd.Flags().DurationVar(&age, "older-than", age, "keep newer content, which may belong to a push in progress")
	_ = cmd.RegisterFlagCompletionFunc("older-than", cobra.FixedCompletions([]string{"1h", "24h", time.Duration(0).String()}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func collectedText(w stdio.Writer, done registry.Collected) error {
	for _, d := range done.Damaged {
		hint := "not referenced"
		if len(d.Repositories) > 0 {
			hint = "push again to " + strings.Join(d.Repositories, ", ")
		}
		fmt.Fprintf(w, "Deleted damaged content %s: %s\n", d.Digest, hint)
	}
	_, err := fmt.Fprintf(w, "Deleted %d unreferenced blobs (%.1f MiB) and %d abandoned uploads.\n", done.Removed, float64(done.Bytes)/(1<<20), done.Uploads)
	return err
}
