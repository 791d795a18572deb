package etcd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

func newDefrag(io *ui.IO, o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "defrag NAME",
		Short: "Defragment a cluster's etcd",
		Long: `Defragment the database of each member, one after another and the leader last. A member
doesn't respond while it is defragmented. All members must be healthy before the first
and after each one.`,
		Example:           `  drover etcd defrag dev`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := o.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return e.Defrag(cmd.Context(), func(d etcd.Defragmented) {
				fmt.Fprintf(io.Err, "Defragmented %s: %s before, %s after.\n", d.Name, mebibytes(d.Before), mebibytes(d.After))
			})
		},
	}
}
