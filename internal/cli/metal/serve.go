package metal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/driver/server"
)

// stopTime bounds how long requests may take to finish when the service stops.
const stopTime = 5 * time.Second

type serveOptions struct {
	*homeFlag
	addr   string
	tls    bool
	driver string
	speed  float64
	lockFD int
	// addresses is the range of elastic addresses of servers.
	addresses string
}

func newServe(io *ui.IO, home *homeFlag) *cobra.Command {
	o := &serveOptions{homeFlag: home}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Packet API in the foreground",
		Long: `Serve the Packet API on this host until stopped. A driver provisions the machines.
Changes are on disk before a response is sent, so the service may be killed at any
time and resumes its work at the next start.

It listens without TLS on a loopback address, and with TLS on the address of the
bridge that connects local machines, so that a manager on one of them can use it.
Other addresses require --tls. Clients trust tls/ca.crt in the home. Every request
requires a token. The addresses are kept across restarts.`,
		Example: `  drover metal serve --driver local
  drover metal serve --driver memory --speed 20    # simulated machines, 20 times as fast
  drover metal serve --driver server --addresses 192.168.1.240/28`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "", "`address` to listen on (default: the previous address, or a free port on 127.0.0.1)")
	f.BoolVar(&o.tls, "tls", false, "serve with a certificate of the CA in the home; required for addresses that are not loopback")
	f.StringVar(&o.driver, "driver", "memory", "`driver` that provisions machines: "+strings.Join(DriverNames(), " or "))
	f.Float64Var(&o.speed, "speed", 1, "speed of simulated machines, as a multiple of real time")
	f.StringVar(&o.addresses, "addresses", "", "`range` of free addresses in the network of your servers, for endpoints of clusters and elastic addresses; kept across restarts")
	f.IntVar(&o.lockFD, "lock-fd", 0, "")
	_ = f.MarkHidden("lock-fd")
	_ = cmd.RegisterFlagCompletionFunc("driver", cobra.FixedCompletions(DriverNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *serveOptions) run(ctx context.Context, io *ui.IO) error {
	home, err := o.home()
	if err != nil {
		return err
	}
	newDriver, err := findDriver(o.driver)
	if err != nil {
		return ui.Usage(err)
	}
	if o.speed <= 0 {
		return ui.Usagef("--speed must be greater than 0")
	}
	if err := home.CheckDriver(o.driver); err != nil {
		return err
	}
	if _, err := o.place(home); err != nil {
		return err
	}
	elastic, err := o.elasticRange()
	if err != nil {
		return err
	}
	release, err := home.Hold()
	if err != nil {
		return err
	}
	defer release()
	// From here on, others may use the home as well as the process that started this one.
	if o.lockFD != 0 {
		_ = os.NewFile(uintptr(o.lockFD), "lock").Close()
	}
	if elastic.IsValid() {
		if err := server.SetRange(home.ServerDir(), elastic); err != nil {
			return fmt.Errorf("recording --addresses: %w", err)
		}
	}
	log := slog.New(slog.NewTextHandler(io.Err, nil))
	s, err := metal.Open(ctx, metal.Options{Home: home, Driver: newDriver, DriverName: o.driver, Speed: o.speed, Log: log})
	if err != nil {
		return err
	}
	return errors.Join(o.serve(ctx, io, home, s), s.Close())
}

// elasticRange returns the range that --addresses names, or the zero value.
func (o *serveOptions) elasticRange() (netip.Prefix, error) {
	if o.addresses == "" {
		return netip.Prefix{}, nil
	}
	if o.driver != "server" {
		return netip.Prefix{}, ui.Usagef("--addresses is for --driver server: other drivers choose addresses themselves")
	}
	p, err := netip.ParsePrefix(o.addresses)
	if err != nil || !p.Addr().Is4() || p != p.Masked() {
		return p, ui.Usagef("--addresses %q is not a range of IPv4 addresses such as 192.168.1.240/28", o.addresses)
	}
	return p, nil
}

func (o *serveOptions) serve(ctx context.Context, io *ui.IO, home metal.Home, s *metal.Server) error {
	project, err := s.DefaultProject()
	if err != nil {
		return err
	}
	endpoint := metal.Endpoint{AdminToken: home.AdminTokenFile(), Driver: o.driver, Project: project, Process: process.Identify(os.Getpid())}
	listeners, err := o.listen(ctx, home, s.HostAddress(), &endpoint)
	if err != nil {
		return err
	}
	if err := home.WriteEndpoint(endpoint); err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	o.next(io, home, endpoint)
	return serveUntil(ctx, s, listeners)
}

// serveUntil serves until the context ends, and lets calls finish.
func serveUntil(ctx context.Context, s *metal.Server, listeners []net.Listener) error {
	web := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.EndWaits()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		stopped <- web.Shutdown(end)
	})
	defer stop()
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- web.Serve(l) }()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, web.Close())
	}
	if err := <-stopped; err != nil {
		return web.Close()
	}
	return nil
}

func (o *serveOptions) next(io *ui.IO, home metal.Home, e metal.Endpoint) {
	fmt.Fprintf(io.Err, `Serving the Packet API at %[1]s with the %[2]s driver.

  export METAL_API_URL=%[5]s
  export METAL_PROJECT_ID=%[3]s
  export METAL_AUTH_TOKEN=$(cat %[4]s)
  drover machine list
`, e.URL, e.Driver, e.Project, home.TokenFile(e.Project), e.APIURL())
}
