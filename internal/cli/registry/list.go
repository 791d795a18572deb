package registry

import (
	stdio "io"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry"
)

func newList(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List repositories and their tags",
		Long: `List the repositories in the registry and their tags. The reference of tag 0.1.0 of
charts/cni is oci://ADDRESS/charts/cni:0.1.0. A HelmChartProxy installs it with repoURL
oci://ADDRESS/charts, chartName cni and version 0.1.0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := home.connect()
			if err != nil {
				return err
			}
			list, err := client.List(cmd.Context())
			if err != nil {
				return err
			}
			return output.Print(io.Out, list, func(w stdio.Writer) error { return listTable(w, list) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

// listTable prints one line per tag, so that line-based tools can process it.
func listTable(w stdio.Writer, list []registry.Repository) error {
	var rows [][]string
	for _, r := range list {
		for _, tag := range r.Tags {
			rows = append(rows, []string{r.Name, tag})
		}
		if len(r.Tags) == 0 {
			rows = append(rows, []string{r.Name, "-"})
		}
	}
	return ui.Table(w, []string{"REPOSITORY", "TAG"}, rows)
}
