package registry

import (
	"context"
	"fmt"
	stdio "io"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry"
)

type pushOptions struct {
	*homeFlag
	output     ui.Output
	file       string
	repository string
}

func newPush(io *ui.IO, home *homeFlag) *cobra.Command {
	o := &pushOptions{homeFlag: home, repository: registry.ChartsRepository}
	cmd := &cobra.Command{
		Use:   "push FILE.tgz [REPOSITORY]",
		Short: "Push a Helm chart archive",
		Long: `Push a chart archive created by "helm package" to REPOSITORY/NAME:VERSION, with name
and version from Chart.yaml. REPOSITORY is "charts" by default. Damaged archives and
files that aren't charts are rejected.

An existing version is replaced. Clusters that installed it keep their copy, because
they refer to charts by digest.`,
		Example: `  helm package hello/ && drover registry push hello-1.0.0.tgz
  drover registry push hello-1.0.0.tgz team-a/charts`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			if len(args) > 1 {
				o.repository = args[1]
			}
			return o.run(cmd.Context(), io)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"tgz"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	o.output.AddFlag(cmd)
	return cmd
}

func (o *pushOptions) run(ctx context.Context, io *ui.IO) error {
	chart, err := readChart(o.file)
	if err != nil {
		return err
	}
	client, err := o.connect()
	if err != nil {
		return err
	}
	pushed, err := client.Push(ctx, o.repository, chart)
	if err != nil {
		return err
	}
	return o.output.Print(io.Out, pushed, func(w stdio.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%s\n", pushed.Reference, pushed.Digest)
		return err
	})
}

func readChart(file string) (*registry.Chart, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the chart: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("%q is a directory\nTry: helm package %s", file, file)
	case info.Size() > registry.MaxChart:
		return nil, fmt.Errorf("%q is %d MiB; the limit for charts is %d MiB", file, info.Size()>>20, registry.MaxChart>>20)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	chart, err := registry.ReadChart(data)
	if err != nil {
		return nil, fmt.Errorf("%q is %w\nTry: helm package DIRECTORY", file, err)
	}
	return chart, nil
}
