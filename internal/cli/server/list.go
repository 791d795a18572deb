package server

import (
	"cmp"
	"fmt"
	stdio "io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
)

func newList(io *ui.IO, f *homeFlag) *cobra.Command {
	var output ui.Output
	var selector []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers of the inventory",
		Example: `  drover server list
  drover server list --label rack=a -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.open()
			if err != nil {
				return err
			}
			all, err := servers(cmd.Context(), c)
			if err != nil {
				return err
			}
			all = slices.DeleteFunc(all, func(s api.Server) bool { return !hasLabels(s, selector) })
			return output.Print(io.Out, all, func(w stdio.Writer) error { return table(w, all) })
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().StringArrayVarP(&selector, "label", "l", nil, "list only servers with the label `KEY=VALUE`; may be repeated")
	return cmd
}

func hasLabels(s api.Server, selector []string) bool {
	for _, pair := range selector {
		key, value, _ := strings.Cut(pair, "=")
		if have, ok := s.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

func table(w stdio.Writer, all []api.Server) error {
	var rows [][]string
	for _, s := range all {
		rows = append(rows, []string{
			s.Name, stateOf(s), cmp.Or(s.EffectivePlan, "-"), cmp.Or(s.Metro, "any"), addressOf(s), cmp.Or(userOf(s), "-"), problemOf(s),
		})
	}
	return ui.Table(w, []string{"NAME", "STATE", "PLAN", "METRO", "ADDRESS", "MACHINE", "PROBLEM"}, rows)
}

// userOf returns cluster/hostname of the machine that has the server, or "".
func userOf(s api.Server) string {
	if s.User != nil {
		return s.User.Name()
	}
	return s.DeviceID
}

func stateOf(s api.Server) string {
	if s.Drained {
		return string(s.State) + ",Drained"
	}
	return string(s.State)
}

func addressOf(s api.Server) string {
	if address, _ := s.Address(); address.IsValid() {
		return address.Addr().String()
	}
	if s.SSH != nil {
		return s.SSH.Host
	}
	return "-"
}

func problemOf(s api.Server) string {
	switch len(s.Problems) {
	case 0:
		return "-"
	case 1:
		return s.Problems[0].Message
	default:
		return fmt.Sprintf("%s; and %d more", s.Problems[0].Message, len(s.Problems)-1)
	}
}

func newDescribe(io *ui.IO, f *homeFlag) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:               "describe NAME",
		Short:             "Show everything that is known about a server",
		Long:              `Show the state of a server, its facts, how it is reached, and problems with remedies.`,
		Example:           `  drover server describe node-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.open()
			if err != nil {
				return err
			}
			var s api.Server
			if err := c.Do(cmd.Context(), http.MethodGet, pathOf(args[0]), nil, &s); err != nil {
				return err
			}
			return output.Print(io.Out, s, func(w stdio.Writer) error { return describe(w, s) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func describe(w stdio.Writer, s api.Server) error {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-10s %s\n", name, value)
		}
	}
	line("Name", s.Name)
	line("ID", s.ID)
	line("State", fmt.Sprintf("%s since %s", stateOf(s), s.Since.Format(time.RFC3339)))
	line("Machine", userOf(s))
	if s.User != nil {
		line("Namespace", s.User.Namespace)
		line("Device", fmt.Sprintf("%s, %s", s.DeviceID, s.User.State))
	}
	line("Plan", s.EffectivePlan)
	line("Place", strings.Trim(s.Metro+"/"+s.Facility, "/"))
	line("Project", s.Project)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		line("Label", key+"="+s.Labels[key])
	}
	if s.SSH != nil {
		line("SSH", fmt.Sprintf("%s@%s:%d", s.SSH.User, s.SSH.Host, cmp.Or(s.SSH.Port, 22)))
		line("Host key", s.SSH.HostKey)
		if b := s.SSH.Bastion; b != nil {
			line("Bastion", fmt.Sprintf("%s@%s:%d", b.User, b.Host, cmp.Or(b.Port, 22)))
		}
	}
	if s.BMC != nil {
		line("BMC", s.BMC.User+"@"+s.BMC.Address.String())
	}
	if s.HasSecrets {
		line("Secrets", "stored, encrypted")
	}
	describeFacts(line, s)
	for _, p := range s.Problems {
		fmt.Fprintf(w, "\n%s: %s\n  Try: %s\n", p.Check, p.Message, p.Remedy)
	}
	return nil
}

func describeFacts(line func(name, value string), s api.Server) {
	f := s.Facts
	if f.CPUs == 0 {
		return
	}
	line("System", f.OS+", kernel "+f.Kernel+", "+f.Arch)
	line("Size", fmt.Sprintf("%d CPUs, %s of memory, %s of %s of disk free", f.CPUs, gibibytes(f.MemoryBytes), gibibytes(f.FreeDiskBytes), gibibytes(f.DiskBytes)))
	line("Network", fmt.Sprintf("%s on %s (%s), gateway %s", f.Address, f.Link, f.MAC, f.Gateway))
	line("Checked", s.Checked.Format(time.RFC3339))
}

func gibibytes(n int64) string {
	return strconv.FormatFloat(float64(n*10>>30)/10, 'f', -1, 64) + " GiB"
}
