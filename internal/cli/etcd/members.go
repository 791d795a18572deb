package etcd

import (
	"cmp"
	"fmt"
	stdio "io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

func newMembers(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:   "members NAME",
		Short: "List the members of a cluster's etcd",
		Long: `List the members of a cluster's etcd with their role, the size of their database and
how much of it is in use, and their health. "drover etcd defrag" frees the rest. Without
quorum, etcd doesn't know its members and the command fails.`,
		Example: `  drover etcd members dev
  drover etcd members dev -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := o.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			members, err := e.Members(cmd.Context())
			if err != nil {
				return err
			}
			return output.Print(io.Out, members, func(w stdio.Writer) error { return membersTable(w, members) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func membersTable(w stdio.Writer, members []etcd.Member) error {
	rows := make([][]string, 0, len(members))
	for _, m := range members {
		rows = append(rows, []string{
			m.Name, m.Address, cmp.Or(m.Role, "-"), mebibytes(m.DBSize), mebibytes(m.DBInUse),
			strconv.FormatUint(m.RaftIndex, 10), cmp.Or(strings.Join(m.Alarms, ","), "-"), m.Health,
		})
	}
	return ui.Table(w, []string{"NAME", "ADDRESS", "ROLE", "SIZE", "IN USE", "RAFT INDEX", "ALARMS", "HEALTH"}, rows)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
