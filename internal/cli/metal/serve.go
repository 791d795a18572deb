package metal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
)

// stopTime bounds how long requests may take to finish when the service stops.
const stopTime = 5 * time.Second

type serveOptions struct {
	*homeFlag
	addr   string
	driver string
	speed  float64
	lockFD int
}

func newServe(io *ui.IO, home *homeFlag) *cobra.Command {
	o := &serveOptions{homeFlag: home}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Packet API in the foreground",
		Long: `Serve the Packet API on this host until stopped. A driver provisions the machines.
Changes are on disk before a response is sent, so the service may be killed at any
time and resumes its work at the next start.

It listens without TLS on a loopback address and on the address of the bridge that
connects local machines, so that a manager on one of them can use it. Every request
requires a token. The addresses are kept across restarts.`,
		Example: `  drover metal serve --driver local
  drover metal serve --driver memory --speed 20    # simulated machines, 20 times as fast`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), io) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "", "`address` to listen on (default: the previous address, or a free port on 127.0.0.1)")
	f.StringVar(&o.driver, "driver", "memory", "`driver` that provisions machines: "+strings.Join(DriverNames(), " or "))
	f.Float64Var(&o.speed, "speed", 1, "speed of simulated machines, as a multiple of real time")
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
	release, err := home.Hold()
	if err != nil {
		return err
	}
	defer release()
	// From here on, others may use the home as well as the process that started this one.
	if o.lockFD != 0 {
		_ = os.NewFile(uintptr(o.lockFD), "lock").Close()
	}
	log := slog.New(slog.NewTextHandler(io.Err, nil))
	s, err := metal.Open(ctx, metal.Options{Home: home, Driver: newDriver, DriverName: o.driver, Speed: o.speed, Log: log})
	if err != nil {
		return err
	}
	return errors.Join(o.serve(ctx, io, home, s), s.Close())
}

func (o *serveOptions) serve(ctx context.Context, io *ui.IO, home metal.Home, s *metal.Server) error {
	l, err := o.listen(ctx, home)
	if err != nil {
		return err
	}
	project, err := s.DefaultProject()
	if err != nil {
		return err
	}
	endpoint := metal.Endpoint{
		URL: "http://" + l.Addr().String(), AdminToken: home.AdminTokenFile(), Driver: o.driver, Project: project,
		Process: process.Identify(os.Getpid()),
	}
	listeners, err := withMachines(ctx, l, s.HostAddress(), &endpoint)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := home.WriteEndpoint(endpoint); err != nil {
		return err
	}
	o.next(io, home, endpoint)
	return serveUntil(ctx, s, listeners)
}

// withMachines adds the same port of the host's address on the network of
// machines, if there is one.
func withMachines(ctx context.Context, l net.Listener, host netip.Addr, e *metal.Endpoint) ([]net.Listener, error) {
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil || !host.IsValid() {
		return []net.Listener{l}, err
	}
	forMachines := netip.AddrPortFrom(host, at.Port()).String()
	e.Machines = "http://" + forMachines
	if at.Addr().IsUnspecified() { // It has every address of the host.
		return []net.Listener{l}, nil
	}
	beside, err := (&net.ListenConfig{}).Listen(ctx, "tcp", forMachines)
	if err != nil {
		return nil, fmt.Errorf("listening for machines: %w: choose another port with --addr", err)
	}
	return []net.Listener{l, beside}, nil
}

// serveUntil serves until the context ends, and lets calls finish.
func serveUntil(ctx context.Context, s *metal.Server, listeners []net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.EndWaits()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		stopped <- server.Shutdown(end)
	})
	defer stop()
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, server.Close())
	}
	if err := <-stopped; err != nil {
		return server.Close()
	}
	return nil
}

// listen takes the address that was asked for, or that of the last time, or
// any.
func (o *serveOptions) listen(ctx context.Context, home metal.Home) (net.Listener, error) {
	var lc net.ListenConfig
	before := lastAddress(home)
	l, err := lc.Listen(ctx, "tcp", cmp.Or(o.addr, before, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("listening for requests: %w: choose another address with --addr", err)
	}
	return l, nil
}

func lastAddress(home metal.Home) string {
	e, err := home.ReadEndpoint()
	if err != nil {
		return ""
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

func (o *serveOptions) next(io *ui.IO, home metal.Home, e metal.Endpoint) {
	fmt.Fprintf(io.Err, `Serving the Packet API at %[1]s with the %[2]s driver.

  export METAL_API_URL=%[5]s
  export METAL_PROJECT_ID=%[3]s
  export METAL_AUTH_TOKEN=$(cat %[4]s)
  drover machine list
`, e.URL, e.Driver, e.Project, home.TokenFile(e.Project), e.APIURL())
}
