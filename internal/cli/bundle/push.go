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
	places

	output ui.Output
	charts string
}

func newPush(io *ui.IO) *cobra.Command {
	o := &pushOptions{}
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a bundle into a registry, with its charts",
		Long: `Put a bundle into a registry: the plane's own, or another one with --registry. It gets
its name as a tag, and v1-36-latest, unless a newer bundle has that one.

With --charts, the charts in that directory go with it: those that "drover bundle build
--charts" wrote there. Charts that the bundle names must be among them, or in the
registry; if one is missing, that is said and nothing is written. Charts of packages
that name a registry of their own are left alone.

Everything is known by its digest. What the registry has already is not sent again, and
what was sent is read back.`,
		Example: `  drover bundle push v1-36-1.yaml --charts out
  drover bundle push v1-36-1.yaml --charts out --registry registry.example.com/packages
  drover bundle push v1-36-1.yaml --registry localhost:5001 --plain-http`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFiles(1, "yaml", "yml"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	cmd.Flags().StringVar(&o.charts, "charts", "", "`directory` with the archives of the charts")
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
		return fmt.Errorf("the bundle %s could not be used, and is not pushed:\n%w", b.Name, err)
	}
	p := transfer.Publication{Bundle: b, Repository: o.repository, Tell: tell(io)}
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
		fmt.Fprintf(io.Err, "Warning: %s is not signed, and a plane does not use it: see `drover bundle sign --help`\n", b.Name)
	}
	done, err := transfer.Publish(ctx, to, p)
	if err != nil {
		return withCharts(err)
	}
	return o.output.Print(io.Out, done, func(w stdio.Writer) error { return copiedText(w, done, o.repository) })
}

// withCharts tells what helps.
func withCharts(err error) error {
	var missing *transfer.MissingError
	if errors.As(err, &missing) {
		return fmt.Errorf("%w\nname the directory of the charts with --charts: `drover bundle build --charts` writes it", err)
	}
	return err
}

// tell shows what is done while it is done.
func tell(io *ui.IO) func(transfer.Sent) {
	return func(s transfer.Sent) {
		what := "sent " + size(s.SentBytes)
		if s.SentBytes == 0 {
			what = "there already"
		}
		fmt.Fprintf(io.Err, "%-7s %s: %s\n", s.Kind, s.Reference, what)
	}
}

func copiedText(w stdio.Writer, done *transfer.Copied, repository string) error {
	verb := "Sent"
	if done.DryRun {
		verb = "Would send"
	}
	fmt.Fprintf(w, "%s %s of %s to %s, in %d parts.\n", verb, size(done.SentBytes), size(done.Bytes), done.To, len(done.Items))
	if done.Latest != "" {
		fmt.Fprintf(w, "%s is newer, and stays the latest.\n", done.Latest)
	}
	if !strings.HasPrefix(done.To, scheme) { // An archive is named above.
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
