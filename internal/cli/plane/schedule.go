package plane

import (
	"cmp"
	"context"
	"fmt"
	stdio "io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/settings"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
)

type scheduleOptions struct {
	plane      management.Flags
	output     ui.Output
	every      time.Duration
	keep       int
	to         string
	recipients []string
	username   string
	caFile     string
}

// scheduleReport is what -o json prints. It has no password.
type scheduleReport struct {
	settings.Settings
	Status schedule.Status `json:"status"`
}

func newSchedule(io *ui.IO) *cobra.Command {
	o := &scheduleOptions{}
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Show or change the scheduled backups of a management cluster",
		Long: `Show the scheduled backups of a management cluster: when, where and for whom they are
made, how old the newest one is, and why the latest attempt failed. Flags change that.

Backups are encrypted for age recipients, by default for the recovery key that the
creation of the cluster wrote to NAME/NAME-recovery.key, which is the only copy. The
manager can't open them. See "drover recover --help" for how to use one.

--to is "metal", the service that has the machines of a host, or
oci://REGISTRY/REPOSITORY. The password for a registry is read from $REGISTRY_PASSWORD.

The scheduled backups of an embedded plane are set with "drover up".`,
		Example: `  drover backup schedule --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig
  drover backup schedule --interval 6h --keep 28 --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig
  drover backup schedule --to oci://registry.example.com/backups --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, io) },
	}
	o.plane.Add(cmd.Flags())
	f := cmd.Flags()
	f.DurationVar(&o.every, "interval", 0, "interval, 0 for no backups")
	f.IntVar(&o.keep, "keep", 0, "`number` of backups to keep")
	f.StringVar(&o.to, "to", "", "`location`: metal or oci://REGISTRY/REPOSITORY")
	f.StringSliceVar(&o.recipients, "recipient", nil, "age `recipient` (age1…) instead of the previous ones; repeatable")
	f.StringVar(&o.username, "username", "", "user `name` for the registry, with the password in $REGISTRY_PASSWORD")
	f.StringVar(&o.caFile, "ca", "", "`file` with the CA of the registry (default: the system's CAs)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	o.output.AddFlag(cmd)
	return cmd
}

func (o *scheduleOptions) run(cmd *cobra.Command, io *ui.IO) error {
	config, err := o.plane.Config()
	if err != nil {
		return err
	}
	s, found, err := bootstrap.ReadBackups(cmd.Context(), config)
	if err != nil && !found {
		return err
	}
	changed, changeErr := o.change(cmd, &s)
	if changeErr != nil {
		return changeErr
	}
	if changed {
		err = bootstrap.ScheduleBackups(cmd.Context(), config, s)
	}
	if err != nil {
		return err
	}
	return o.show(cmd.Context(), io, config, s)
}

// change applies the flags, and reports whether there are any.
func (o *scheduleOptions) change(cmd *cobra.Command, s *settings.Settings) (bool, error) {
	is := cmd.Flags().Changed
	if is("interval") {
		s.Every = o.every
	}
	if is("keep") {
		s.Keep = o.keep
	}
	if is("to") {
		if o.to != settings.Metal && !strings.HasPrefix(o.to, "oci://") {
			return false, ui.Usagef("--to is %q: use metal or oci://REGISTRY/REPOSITORY; a directory would be lost with the management cluster", o.to)
		}
		s.Location = o.to
	}
	if is("recipient") {
		s.Recipients = o.recipients
	}
	if is("username") {
		s.Username, s.Password = o.username, os.Getenv("REGISTRY_PASSWORD")
	}
	if is("ca") {
		ca, err := os.ReadFile(o.caFile)
		if err != nil {
			return false, fmt.Errorf("reading the CA of the registry: %w", err)
		}
		s.CA = string(ca)
	}
	return slices.ContainsFunc([]string{"interval", "keep", "to", "recipient", "username", "ca"}, is), nil
}

func (o *scheduleOptions) show(ctx context.Context, io *ui.IO, config *rest.Config, s settings.Settings) error {
	status, err := bootstrap.BackupStatus(ctx, config)
	if err != nil {
		return err
	}
	s.Password = ""
	return o.output.Print(io.Out, scheduleReport{s, status}, func(w stdio.Writer) error {
		every := "off"
		if !s.Off() {
			every = "every " + s.Every.String()
		}
		fmt.Fprintf(w, "Backups     %s, %d kept\n", every, s.Keep)
		fmt.Fprintf(w, "Location    %s\n", cmp.Or(s.Location, "none; set one with --to"))
		for _, r := range s.Recipients {
			fmt.Fprintf(w, "Recipient   %s\n", r)
		}
		_, err := fmt.Fprintf(w, "Newest      %s\n", statusLine(status, time.Now()))
		return err
	})
}

// statusLine says how old the newest backup is, and why the latest attempt failed.
func statusLine(s schedule.Status, now time.Time) string {
	line := "none yet"
	if at := s.Last.Time(); !at.IsZero() {
		line = fmt.Sprintf("%s ago, %s; %d kept", now.Sub(at).Round(time.Second), s.Last.Location, s.Kept)
	}
	if s.Failure != "" {
		line += "; the latest attempt failed: " + s.Failure
	}
	return line
}
