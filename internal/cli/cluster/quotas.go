package cluster

import (
	"fmt"
	stdio "io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func newGetQuotas(io *ui.IO) *cobra.Command {
	var l view
	cmd := &cobra.Command{
		Use:     "quotas",
		Aliases: []string{"quota"},
		Short:   "Show what clusters of a namespace use and may use",
		Long: `Show how many clusters, machines and CPUs the clusters of a namespace use, and how
many they may use. A group that is scaled automatically counts with its maximum.

An administrator sets quotas with a ResourceQuota in the namespace, with the keys
drover.dev/clusters, drover.dev/machines and drover.dev/cpus.`,
		Example: `  drover get quotas
  drover get quotas -n team-a -o json
  drover kubectl create quota team -n team-a --hard drover.dev/machines=10`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plane, err := l.connect()
			if err != nil {
				return err
			}
			quotas, err := plane.Quotas(cmd.Context(), l.namespace)
			if err != nil {
				return err
			}
			if len(quotas) == 0 && l.output == "" {
				fmt.Fprintln(io.Err, "No quotas or clusters found.")
				return nil
			}
			return l.output.Print(io.Out, quotas, func(w stdio.Writer) error { return quotaTable(w, quotas) })
		},
	}
	l.add(cmd)
	return cmd
}

func quotaTable(w stdio.Writer, quotas []inspect.Quota) error {
	rows := make([][]string, 0, len(quotas))
	for _, q := range quotas {
		most := "unlimited"
		if q.Quota != nil {
			most = strconv.FormatInt(*q.Quota, 10)
		}
		rows = append(rows, []string{q.Namespace, q.Resource, strconv.FormatInt(q.Used, 10), most})
	}
	return ui.Table(w, []string{"NAMESPACE", "RESOURCE", "USED", "QUOTA"}, rows)
}
