package bundle

import (
	"context"
	"fmt"
	stdio "io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Exit codes of diff, the same as those of diff(1).
const (
	exitChanges = 1
	exitTrouble = 2
)

func newDiff(io *ui.IO) *cobra.Command {
	var p registries
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare two bundles",
		Long: `Show the packages, versions and images that were added, changed or removed between two
bundles. Each is a file, a tag in --registry, or an oci:// reference (see "drover bundle
--help").

The exit code is 0 if the bundles contain the same packages, 1 if they differ, and 2 if
the comparison failed.`,
		Example: `  drover bundle diff v1-36-1.yaml v1-36-2.yaml
  drover bundle diff v1-36-1 v1-36-latest
  drover bundle diff v1-36-1 v1-36-latest -o json | jq '.packages[] | select(.change == "removed")'`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeFiles(2, "yaml", "yml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			difference, err := p.compare(cmd.Context(), io, args)
			if err == nil {
				err = output.Print(io.Out, difference, func(w stdio.Writer) error { return differenceText(w, difference) })
			}
			switch {
			case err != nil:
				return &ui.CodeError{Code: exitTrouble, Err: err}
			case difference.Empty():
				return nil
			default:
				return ui.Silent(exitChanges)
			}
		},
	}
	p.add(cmd)
	p.addRegistry(cmd)
	output.AddFlag(cmd)
	return cmd
}

func (p *registries) compare(ctx context.Context, io *ui.IO, names []string) (bundle.Difference, error) {
	older, err := p.load(ctx, io, names[0])
	if err != nil {
		return bundle.Difference{}, err
	}
	newer, err := p.load(ctx, io, names[1])
	if err != nil {
		return bundle.Difference{}, err
	}
	return bundle.Compare(older, newer), nil
}

var marks = map[bundle.Change]string{bundle.Added: "+", bundle.Changed: "~", bundle.Removed: "-"}

func differenceText(w stdio.Writer, d bundle.Difference) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s → %s\n", d.From, d.To)
	if d.Empty() {
		fmt.Fprintln(&out, "  No differences.")
	}
	for _, p := range d.Packages {
		fmt.Fprintf(&out, "%s %s%s\n", marks[p.Change], p.Name, step(p.From, p.To))
		for _, setting := range p.Settings {
			fmt.Fprintf(&out, "    ~ %s\n", setting)
		}
		for _, v := range p.Versions {
			fmt.Fprintf(&out, "    %s version %s%s\n", marks[v.Change], v.Name, changesOf(v))
		}
		for _, image := range p.Images {
			fmt.Fprintf(&out, "    %s image %s%s\n", marks[image.Change], image.Repository, step(short(image.From), short(image.To)))
		}
	}
	_, err := stdio.WriteString(w, out.String())
	return err
}

func step(from, to string) string {
	switch {
	case from == "" && to == "":
		return ""
	case from == "" || from == to:
		return " " + to
	case to == "":
		return " " + from
	default:
		return " " + from + " → " + to
	}
}

// changesOf describes the changes of a version that both bundles contain.
func changesOf(v bundle.VersionDifference) string {
	if v.Change != bundle.Changed {
		return ""
	}
	parts := v.Settings
	if v.From != v.To {
		parts = append([]string{"chart" + step(short([]string{v.From}), short([]string{v.To}))}, parts...)
	}
	return ": " + strings.Join(parts, ", ")
}

// shortDigest is the length of an abbreviated digest.
const shortDigest = len("sha256:") + 12

func short(digests []string) string {
	out := make([]string, 0, len(digests))
	for _, d := range digests {
		out = append(out, d[:min(len(d), shortDigest)])
	}
	return strings.Join(out, ", ")
}
