package metal

import (
	"context"
	"fmt"
	stdio "io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/capacity"
)

// quotaChange holds the flags of `drover metal project quota`.
type quotaChange struct{ machines, cpus, memory string }

func newProjectQuota(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	o := &quotaChange{}
	cmd := &cobra.Command{
		Use:   "quota PROJECT",
		Short: "Show or change the quota of a project",
		Long: `Show what a project, given by name or ID, uses and may use. With a flag, change its
quota. Existing machines keep running, even if there are more than the quota allows.`,
		Example: `  drover metal project quota default
  drover metal project quota team-a --machines 10 --cpus 40 --memory 64Gi
  drover metal project quota team-a --memory unlimited`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, c, err := home.open()
			if err != nil {
				return err
			}
			quota, err := o.run(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return output.Print(io.Out, quota, func(w stdio.Writer) error { return quotaTable(w, quota) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.machines, "machines", "", "`number` of machines, or \"unlimited\"")
	f.StringVar(&o.cpus, "cpus", "", "`number` of CPUs of all machines, or \"unlimited\"")
	f.StringVar(&o.memory, "memory", "", "`amount` of memory of all machines, such as 64Gi, or \"unlimited\"")
	output.AddFlag(cmd)
	return cmd
}

func (o *quotaChange) run(ctx context.Context, c *admin.Client, name string) (api.ProjectQuota, error) {
	var out api.ProjectQuota
	p, err := findProject(ctx, c, name)
	if err != nil {
		return out, err
	}
	path := "/drover/v1/projects/" + p.ID + "/quota"
	if err := c.Do(ctx, http.MethodGet, path, nil, &out); err != nil || *o == (quotaChange{}) {
		return out, err
	}
	if err := o.apply(&out.Quota); err != nil {
		return out, ui.Usage(err)
	}
	if err := c.Do(ctx, http.MethodPut, path, out.Quota, &out); err != nil {
		return out, fmt.Errorf("changing the quota of project %q: %w", name, err)
	}
	return out, nil
}

func (o *quotaChange) apply(q *capacity.Quota) error {
	for _, f := range []struct {
		flag, text string
		to         **int64
	}{{"machines", o.machines, &q.Machines}, {"cpus", o.cpus, &q.CPUs}, {"memory", o.memory, &q.MemoryBytes}} {
		switch f.text {
		case "":
			continue
		case unlimited:
			*f.to = nil
			continue
		}
		amount, err := resource.ParseQuantity(f.text)
		if err != nil || amount.Sign() < 0 || f.flag != "memory" && !isWhole(f.text) {
			return fmt.Errorf("--%s %q is not an amount; use 0 or more, or %q", f.flag, f.text, unlimited)
		}
		value := amount.Value()
		*f.to = &value
	}
	return nil
}

func isWhole(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

func quotaTable(w stdio.Writer, q api.ProjectQuota) error {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	most := func(n *int64, show func(int64) string) string {
		if n == nil {
			return unlimited
		}
		return show(*n)
	}
	return ui.Table(w, []string{"RESOURCE", "USED", "QUOTA"}, [][]string{
		{"machines", number(q.Used.Machines), most(q.Quota.Machines, number)},
		{"CPUs", number(q.Used.CPUs), most(q.Quota.CPUs, number)},
		{"memory", gibibytes(q.Used.MemoryBytes), most(q.Quota.MemoryBytes, gibibytes)},
	})
}
