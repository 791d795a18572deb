package bundle

import (
	"context"
	"errors"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

type pushOptions struct {
	registries

	output ui.Output
	charts string
}

func newPush(io *ui.IO) *cobra.Command {
	o := &pushOptions{}
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Push a bundle and its charts to a registry",
		Long: `Push a bundle to the plane's registry, or to another one with --registry. The bundle is
tagged with its name and with v1-36-latest, unless a newer bundle has the latter.

--charts also pushes the charts that "drover bundle build --charts" wrote to a directory.
Every chart of the bundle must be in that directory or in the registry; otherwise the
command reports the missing charts and writes nothing. Charts of packages that name their
own registry are skipped.

All content is addressed by digest: existing content is not sent again, and sent content
is read back.`,
		Example: `  drover bundle push v1-36-1.yaml --charts out
  drover bundle push v1-36-1.yaml --charts out --registry registry.example.com/packages
  drover bundle push v1-36-1.yaml --registry localhost:5001 --plain-http`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	cmd.Flags().StringVar(&o.charts, "charts", "", "`directory` with chart archives")
	_ = cmd.MarkFlagDirname("charts")
	o.add(cmd)
	o.addRegistry(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

func (o *pushOptions) run(ctx context.Context, io *ui.IO, file string) error {
	b, err := readFile(io, file)
	if err != nil {
		return err
	}
	if err := bundle.Check(b); err != nil {
		return fmt.Errorf("bundle %s is invalid and was not pushed:\n%w", b.Name, err)
	}
	p := transfer.Publication{Bundle: b, Repository: o.repository, Report: printProgress(io)}
	if o.charts != "" {
		if p.Charts, err = pack.ReadCharts(o.charts); err != nil {
			return err
		}
	}
	to, err := o.open(o.registry)
	if err != nil {
		return err
	}
	if b.Annotations[packagesv1.SignatureAnnotation] == "" {
		fmt.Fprintf(io.Err, "Warning: %s is not signed, so no cluster will use it. Try: drover bundle sign --help\n", b.Name)
	}
	done, err := transfer.Publish(ctx, to, p)
	if err != nil {
		return suggestCharts(err)
	}
	return o.output.Print(io.Out, done, func(w stdio.Writer) error { return copiedText(w, done, o.repository) })
}

// suggestCharts adds a hint to the error for missing charts.
func suggestCharts(err error) error {
	var missing *transfer.MissingError
	if errors.As(err, &missing) {
		return fmt.Errorf("%w\nPass --charts with the directory that `drover bundle build --charts` wrote", err)
	}
	return err
}

// printProgress prints a line for each chart, image or bundle that was copied.
func printProgress(io *ui.IO) func(transfer.Sent) {
	return func(s transfer.Sent) {
		result := "sent " + size(s.SentBytes)
		if s.SentBytes == 0 {
			result = "already exists"
		}
		fmt.Fprintf(io.Err, "%-7s %s: %s\n", s.Kind, s.Reference, result)
	}
}

func copiedText(w stdio.Writer, done *transfer.Copied, repository string) error {
	verb := "Sent"
	if done.DryRun {
		verb = "Would send"
	}
	fmt.Fprintf(w, "%s %s of %s to %s (%d artifacts).\n", verb, size(done.SentBytes), size(done.Bytes), done.To, len(done.Items))
	if done.Latest != "" {
		fmt.Fprintf(w, "%s is newer and remains the latest bundle.\n", done.Latest)
	}
	if !strings.HasPrefix(done.To, scheme) { // the line above names the archive
		return nil
	}
	var err error
	for _, tag := range done.Tags {
		_, err = fmt.Fprintf(w, "%s/%s:%s\n", done.To, repository, tag)
	}
	return err
}

func size(bytes int64) string {
	const kibi = 1 << 10
	switch {
	case bytes < kibi:
		return fmt.Sprintf("%d B", bytes)
	case bytes < kibi*kibi:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/kibi)
	default:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(kibi*kibi))
	}
}
