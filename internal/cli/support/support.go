// Package support implements `drover support-bundle`.
package support

import (
	"cmp"
	"context"
	"fmt"
	stdio "io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/operate/support"
	"github.com/drover-dev/drover/internal/plane"
)

// maxLog is the number of bytes collected of each log.
const maxLog = 8 << 20

// listTimeout bounds listing logs.
const listTimeout = 10 * time.Second

type options struct {
	plane     management.Flags
	home      string
	metalHome string
	dir       string
	output    string
}

// NewCommand returns `drover support-bundle`.
func NewCommand(io *ui.IO) *cobra.Command {
	return new(options).command(io)
}

func (o *options) command(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect logs and objects for troubleshooting",
		Long: `Collect the objects, events and logs of a management plane, the consoles of
machines and the logs of commands in one archive.

The archive contains no secrets: of a Secret only the names and sizes of its keys,
no values of charts, no contents of files, and logs without keys, tokens and
passwords. Review it nevertheless before you share it.

The command only reads, and works on a broken plane too: missing.txt in the archive
lists what could not be read.`,
		Example: `  drover support-bundle
  drover support-bundle --kubeconfig mgmt.kubeconfig --directory billy --file billy.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	o.plane.Add(cmd.Flags())
	cmd.Flags().StringVar(&o.home, "home", "", "`directory` of the plane whose logs to collect (default $DROVER_HOME, or ~/.drover)")
	cmd.Flags().StringVar(&o.metalHome, "metal-home", "", "`directory` of the local Packet API server whose machines to collect (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	cmd.Flags().StringVar(&o.dir, "directory", "", "`directory` that commands created for a cluster")
	cmd.Flags().StringVar(&o.output, "file", "", "`file` to write (default support-bundle-TIME.tar.gz)")
	return cmd
}

func (o *options) run(ctx context.Context, io *ui.IO) error {
	var problems []string
	cfg, err := o.plane.Config()
	if err != nil {
		problems = append(problems, err.Error())
	}
	logs, more := o.logs(ctx, cfg)
	problems = append(problems, more...)
	name := cmp.Or(o.output, "support-bundle-"+time.Now().Format("2006-01-02T15_04_05")+".tar.gz")
	var missing []string
	err = atomicfile.Stream(name, 0o600, func(w stdio.Writer) error {
		missing, err = support.Collect(ctx, w, support.Options{
			Config: cfg, Logs: logs, MaxLog: maxLog, Facts: facts(problems),
			Progress: func(source string) { fmt.Fprintf(io.Err, "Collecting %s\n", source) },
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, m := range append(problems, missing...) {
		fmt.Fprintf(io.Err, "Not collected: %s\n", m)
	}
	fmt.Fprintln(io.Out, name)
	return nil
}

// logs lists the logs of the plane, the machines and commands.
func (o *options) logs(ctx context.Context, cfg *rest.Config) (logs []support.Log, problems []string) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	home := plane.Home{Dir: cmp.Or(o.home, plane.DefaultHome())}
	logs = append(logs, support.Files(filepath.Dir(home.LogFile("any")), "logs/plane")...)
	machines := metal.Home{Dir: cmp.Or(o.metalHome, metal.DefaultHome())}
	logs = append(logs, support.Files(filepath.Dir(machines.LogFile()), "logs/metal")...)
	if o.dir != "" {
		logs = append(logs, support.Files(o.dir, "command")...)
	}
	if c, err := admin.Open(machines); err == nil {
		consoles, err := support.Consoles(ctx, c)
		if err != nil {
			problems = append(problems, err.Error())
		}
		logs = append(logs, consoles...)
	}
	if cfg != nil {
		managers, err := support.Managers(ctx, cfg)
		if err != nil {
			problems = append(problems, err.Error())
		}
		logs = append(logs, managers...)
	}
	return logs, problems
}

func facts(problems []string) map[string]any {
	host, _ := os.Hostname()
	return map[string]any{
		"version": version.Get(), "time": time.Now().UTC().Format(time.RFC3339), "host": host, "os": runtime.GOOS, "arch": runtime.GOARCH,
		"cpus": runtime.NumCPU(), "problems": problems,
	}
}
