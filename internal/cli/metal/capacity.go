package metal

import (
	"fmt"
	stdio "io"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/capacity"
)

const capacityPath = "/drover/v1/capacity"

func newCapacity(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	var all bool
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Show how many machines are used and free",
		Long: `Show what the machines of this host share, and how many machines of each plan are
used and free. Machines may use more than the host has: "set" changes how much more.
Simulated machines are unlimited unless you limit them.

The table lists the plans of this host, and plans that are used or limited; --all
lists all.`,
		Example: `  drover metal capacity
  drover metal capacity set --memory 1.5
  drover metal capacity set --limit c3.small.x86/da=3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, c, err := home.open()
			if err != nil {
				return err
			}
			var report api.CapacityReport
			if err := c.Do(cmd.Context(), http.MethodGet, capacityPath, nil, &report); err != nil {
				return err
			}
			return output.Print(io.Out, report, func(w stdio.Writer) error { return capacityTables(w, report, all) })
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "list all plans")
	cmd.AddCommand(newCapacitySet(io, home))
	return cmd
}

func capacityTables(w stdio.Writer, r api.CapacityReport, all bool) error { //nolint:revive // A flag of the command.
	if h := r.Host; h != nil {
		rows := [][]string{
			resourceRow("CPUs", h.CPUs, r.Overcommit.CPUs, func(n int64) string { return strconv.FormatInt(n, 10) }),
			resourceRow("memory", h.MemoryBytes, r.Overcommit.Memory, gibibytes),
			resourceRow("disk", h.DiskBytes, r.Overcommit.Disk, gibibytes),
		}
		if err := ui.Table(w, []string{"RESOURCE", "HOST", "OVERCOMMIT", "USED", "FREE"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	var rows [][]string
	for _, p := range r.Plans {
		if all || p.Used > 0 || strings.HasPrefix(p.Plan, "local.") && p.Metro == "" || isLimited(r.Limits, p) {
			rows = append(rows, planRow(p))
		}
	}
	return ui.Table(w, []string{"PLAN", "METRO", "USED", "FREE"}, rows)
}

func resourceRow(name string, r api.ResourceCapacity, overcommit float64, show func(int64) string) []string {
	return []string{name, show(r.Real), "x" + strconv.FormatFloat(overcommit, 'g', -1, 64), show(r.Used), show(r.Free)}
}

func planRow(p api.PlanCapacity) []string {
	metro, free := p.Metro, "unlimited"
	if metro == "" {
		metro = "any"
	}
	if p.Free != nil {
		free = strconv.Itoa(*p.Free)
	}
	return []string{p.Plan, metro, strconv.Itoa(p.Used), free}
}

func isLimited(limits []capacity.Limit, p api.PlanCapacity) bool {
	for _, l := range limits {
		if l.Plan == p.Plan && l.Metro == p.Metro {
			return true
		}
	}
	return false
}

func gibibytes(n int64) string {
	return strconv.FormatFloat(float64(n*10>>30)/10, 'f', -1, 64) + " GiB"
}

// capacityChange holds the flags of `drover metal capacity set`.
type capacityChange struct {
	cpus, memory, disk float64
	limits             []string
}

func newCapacitySet(io *ui.IO, home *homeFlag) *cobra.Command {
	o := &capacityChange{}
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change how many machines fit",
		Long: `Change the overcommit of the host, or limit the machines of a plan in a metro. Flags
that you leave out change nothing. Existing machines keep running, even if there are
more than would fit.

An overcommit of 2 gives machines twice as much as the host has; 0 is the default: 16
for CPUs, 2 for memory, 1 for the disk.`,
		Example: `  # Give machines no more memory than the host has
  drover metal capacity set --memory 1

  # At most 3 machines of a plan in a metro, 10 in another, and no limit in a third
  drover metal capacity set --limit c3.small.x86/da=3 --limit any/ny=10 --limit any/am=unlimited`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, io, home) },
	}
	f := cmd.Flags()
	f.Float64Var(&o.cpus, "cpus", 0, "`factor` by which machines may have more CPUs than the host")
	f.Float64Var(&o.memory, "memory", 0, "`factor` by which machines may have more memory than the host")
	f.Float64Var(&o.disk, "disk", 0, "`factor` by which machines may have more disk than the host")
	f.StringArrayVar(&o.limits, "limit", nil, "`PLAN/METRO=N` limits machines; \"any\" stands for all plans or metros, and \"unlimited\" removes a limit")
	cmd.MarkFlagsOneRequired("cpus", "memory", "disk", "limit")
	return cmd
}

func (o *capacityChange) run(cmd *cobra.Command, io *ui.IO, home *homeFlag) error {
	_, c, err := home.open()
	if err != nil {
		return err
	}
	var report api.CapacityReport
	if err := c.Do(cmd.Context(), http.MethodGet, capacityPath, nil, &report); err != nil {
		return err
	}
	if err := o.apply(cmd, &report.Settings); err != nil {
		return err
	}
	if err := c.Do(cmd.Context(), http.MethodPut, capacityPath, report.Settings, &report); err != nil {
		return fmt.Errorf("changing the capacity: %w", err)
	}
	return capacityTables(io.Out, report, false)
}

// apply changes the settings that the flags name.
func (o *capacityChange) apply(cmd *cobra.Command, s *capacity.Settings) error {
	for _, f := range []struct {
		name string
		from float64
		to   *float64
	}{{"cpus", o.cpus, &s.Overcommit.CPUs}, {"memory", o.memory, &s.Overcommit.Memory}, {"disk", o.disk, &s.Overcommit.Disk}} {
		if cmd.Flags().Changed(f.name) {
			*f.to = f.from
		}
	}
	for _, text := range o.limits {
		limit, keep, err := parseLimit(text)
		if err != nil {
			return ui.Usage(err)
		}
		s.Limits = replaceLimit(s.Limits, limit, keep)
	}
	return nil
}

// parseLimit reads PLAN/METRO=N, and reports whether there is a limit.
func parseLimit(text string) (l capacity.Limit, limited bool, err error) {
	place, number, found := strings.Cut(text, "=")
	plan, metro, both := strings.Cut(place, "/")
	if !found || !both || plan == "" || metro == "" {
		return l, false, fmt.Errorf("--limit %q: use PLAN/METRO=N, such as c3.small.x86/da=3 or any/any=10", text)
	}
	l = capacity.Limit{Plan: anyAsEmpty(plan), Metro: anyAsEmpty(metro)}
	if number == unlimited {
		return l, false, nil
	}
	if l.Devices, err = strconv.Atoi(number); err != nil || l.Devices < 0 {
		return l, false, fmt.Errorf("--limit %q: %q is not a number of machines; use 0 or more, or %q", text, number, unlimited)
	}
	return l, true, nil
}

// unlimited removes a limit or a quota.
const unlimited = "unlimited"

func anyAsEmpty(text string) string {
	if text == "any" {
		return ""
	}
	return strings.ToLower(text)
}

func replaceLimit(limits []capacity.Limit, l capacity.Limit, keep bool) []capacity.Limit { //nolint:revive // Part of a value.
	out := []capacity.Limit{}
	for _, x := range limits {
		if x.Plan != l.Plan || x.Metro != l.Metro {
			out = append(out, x)
		}
	}
	if keep {
		out = append(out, l)
	}
	return out
}
