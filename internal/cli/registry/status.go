package registry

import (
	"errors"
	"fmt"
	stdio "io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
)

// statusReport is the output of status.
type statusReport struct {
	plane.Registry
	User string `json:"user"`
	// Charts is the repoURL of charts, for a HelmChartProxy.
	Charts string `json:"charts"`
}

func newReport(r plane.Registry) statusReport {
	return statusReport{Registry: r, User: registry.User, Charts: "oci://" + host(r) + "/charts"}
}

func host(r plane.Registry) string {
	if u, err := url.Parse(r.URL); err == nil {
		return u.Host
	}
	return r.URL
}

func newStatus(io *ui.IO, home *homeFlag) *cobra.Command {
	var output ui.Output
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"login-info"},
		Short:   "Show the registry's address and how to log in",
		Long: `Show the address, the CA, the user and the password file of the registry. The password
itself is not shown. The exit code is 3 if the registry isn't running.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := home.registry()
			if errors.Is(err, plane.ErrNoPlane) {
				return &ui.CodeError{Code: ui.ExitNotRunning, Err: err}
			}
			if err != nil {
				return err
			}
			report := newReport(r)
			if err := output.Print(io.Out, report, report.table); err != nil {
				return err
			}
			if r.State != plane.Ready {
				return ui.Silent(ui.ExitNotRunning)
			}
			return nil
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func (r statusReport) table(w stdio.Writer) error {
	fmt.Fprintf(w, "Registry   %s\n", r.State)
	fmt.Fprintf(w, "URL        %s\n", r.URL)
	if r.Address != "" {
		fmt.Fprintf(w, "Also at    %s\n", r.Address)
	}
	fmt.Fprintf(w, "CA         %s\n", r.CAFile)
	fmt.Fprintf(w, "User       %s\n", r.User)
	fmt.Fprintf(w, "Password   in %s\n", r.PasswordFile)
	fmt.Fprintf(w, "Directory  %s\n", r.Dir)
	_, err := fmt.Fprintf(w, `
  repoURL: %[5]s    # in a HelmChartProxy; requires no credentials
  helm registry login %[1]s --ca-file %[2]s -u %[3]s --password-stdin < %[4]s
`, host(r.Registry), r.CAFile, r.User, r.PasswordFile, r.Charts)
	return err
}
