// Package web implements `drover ui`, which shows a fleet in a browser. It parses flags and prints
// the address; package operate/web does the work.
package web

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/background"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/web"
)

type options struct {
	plane     management.Flags
	namespace string
	port      int
	noBrowser bool
}

// NewCommand returns `drover ui`.
func NewCommand(io *ui.IO) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the fleet in a browser",
		Long: `Show the fleet in a browser: the health of every cluster, what it is waiting for,
its machines, add-ons and packages, live. Serves the page on loopback until you
interrupt it.

Everything happens with the privileges of the kubeconfig, and the page shows what
they allow. The address that the command prints opens one browser, once; a cookie
keeps it signed in for 12 hours, while the command runs. No credentials reach the
browser, and the page loads nothing from other hosts.

The management plane is the one of --kubeconfig, of $KUBECONFIG, or the embedded
plane in $DROVER_HOME.`,
		Example: `  drover ui
  drover ui --no-browser --port 8443            # print the address only
  drover ui --kubeconfig creator.kubeconfig     # what a creator may see`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	f := cmd.Flags()
	o.plane.Add(f)
	f.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` to show if you may not read all (default: that of the kubeconfig)")
	f.IntVar(&o.port, "port", 0, "port on loopback (default: any free port)")
	f.BoolVar(&o.noBrowser, "no-browser", false, "print the address and open no browser")
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

func (o *options) run(ctx context.Context, io *ui.IO) error {
	if o.port < 0 || o.port > 65535 {
		return ui.Usagef("--port must be between 0 and 65535: %d", o.port)
	}
	config, err := o.plane.Config()
	if err != nil {
		return err
	}
	plane, err := inspect.Connect(config)
	if err != nil {
		return err
	}
	plane.Own = cmp.Or(o.namespace, o.plane.Namespace())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("serving the page: %w\nTry: drover ui --port 0", err)
	}
	server, err := web.New(plane, listener)
	if err != nil {
		return err
	}
	fmt.Fprintln(io.Out, server.URL())
	if !o.noBrowser {
		remove, err := background.OpenBrowser(ctx, server.URL())
		if err != nil {
			fmt.Fprintln(io.Err, "Open this address in a browser. It works once.")
		}
		defer remove()
	}
	return server.Serve(ctx)
}
