package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/userdir"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

type importOptions struct {
	*homeFlag
	dryRun             bool
	user, identityFile string
}

func newImport(io *ui.IO, f *homeFlag) *cobra.Command {
	o := &importOptions{homeFlag: f}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import servers from a hardware CSV or a k0sctl file",
		Long: `Add the servers of a file to the inventory, and update those that exist. The file is
the hardware CSV of bare-metal EKS Anywhere, with the columns
hostname,bmc_ip,bmc_username,bmc_password,mac,ip_address,netmask,gateway,nameservers,labels,disk[,vlan_id],
or a k0sctl configuration, of which the hosts are read.

Every problem is reported with its place in the file, and a file with a problem
changes nothing. What a file leaves out stays as it is.

A CSV doesn't say how to log in: --user and --identity-file do, for the address of
each server. The metal service checks new servers in the background.`,
		Example: `  drover server import hardware.csv --user admin --identity-file ~/.ssh/id_ed25519 --dry-run
  drover server import k0sctl.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only check the file")
	cmd.Flags().StringVar(&o.user, "user", "", "`user` to log in as on servers of a CSV: root, or one who may use sudo without a password")
	cmd.Flags().StringVar(&o.identityFile, "identity-file", "", "`file` with the private key of servers for which the file names none")
	return cmd
}

func (o *importOptions) run(ctx context.Context, io *ui.IO, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return ui.Usage(err)
	}
	rows, err := inventory.Read(data)
	if err != nil {
		return ui.Usage(fmt.Errorf("reading %q: %w", file, err))
	}
	if err := o.complete(rows); err != nil {
		return err
	}
	problems, notes := inventory.Messages(rows)
	for _, n := range notes {
		fmt.Fprintf(io.Err, "Note: %s\n", n)
	}
	if len(problems) > 0 {
		return rejected(file, problems)
	}
	c, err := o.open()
	if err != nil {
		return err
	}
	req := api.ServerImport{DryRun: o.dryRun}
	for _, r := range rows {
		req.Servers = append(req.Servers, r.Entry)
	}
	var out api.ServerImportResult
	if err := c.Do(ctx, http.MethodPost, serversPath, req, &out); err != nil {
		return fmt.Errorf("importing %q: %w", file, err)
	}
	for _, p := range out.Problems {
		rows[p.Index].Problems = append(rows[p.Index].Problems, p.Message)
	}
	if problems, _ := inventory.Messages(rows); len(problems) > 0 {
		return rejected(file, problems)
	}
	verb := "imported"
	if o.dryRun {
		verb = "would be imported"
	}
	fmt.Fprintf(io.Out, "%s %s: %d new, %d updated\n", count(len(rows), "server"), verb, len(out.Added), len(out.Updated))
	return nil
}

func rejected(file string, problems []string) error {
	return ui.Usage(fmt.Errorf("%q has %s, and nothing was imported:\n  %s", file, count(len(problems), "problem"), strings.Join(problems, "\n  ")))
}

// complete adds how to log in where the file doesn't say it.
func (o *importOptions) complete(rows []inventory.Row) error {
	key, err := userdir.Expand(o.identityFile)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if r.SSH == nil && o.user != "" && len(r.NICs) > 0 && r.NICs[0].Address.IsValid() {
			r.SSH = &driver.SSH{Host: r.NICs[0].Address.Addr().String(), User: o.user}
		}
		for s := r.SSH; s != nil; s = s.Bastion {
			expanded, err := userdir.Expand(s.KeyFile)
			if err != nil {
				return err
			}
			if s.KeyFile = expanded; expanded == "" {
				s.KeyFile = key
			}
		}
	}
	return nil
}

func newExport(io *ui.IO, f *homeFlag) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the inventory as a hardware CSV or a k0sctl file",
		Long: `Write the inventory to standard output, as a hardware CSV or a k0sctl configuration
that "drover server import" reads. Passwords are left out: nobody can read them.`,
		Example: `  drover server export --format csv > hardware.csv`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "csv" && format != "k0sctl" {
				return ui.Usagef("--format %q: use csv or k0sctl", format)
			}
			c, err := f.open()
			if err != nil {
				return err
			}
			all, err := servers(cmd.Context(), c)
			if err != nil {
				return err
			}
			plain := make([]inventory.Server, 0, len(all))
			for _, s := range all {
				plain = append(plain, s.Server)
			}
			return write(io, format, plain)
		},
	}
	cmd.Flags().StringVar(&format, "format", "csv", "`format` of the file: csv or k0sctl")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"csv", "k0sctl"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func write(io *ui.IO, format string, all []inventory.Server) error {
	if len(all) == 0 {
		return errors.New("the inventory is empty")
	}
	if format == "csv" {
		return inventory.WriteCSV(io.Out, all)
	}
	skipped, err := inventory.WriteK0sctl(io.Out, all)
	if len(skipped) > 0 {
		fmt.Fprintf(io.Err, "Note: left out without SSH access: %s\n", strings.Join(skipped, ", "))
	}
	return err
}
