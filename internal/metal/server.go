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
	"os"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/store"
)

// defaultRateLimit is the number of calls per project and minute: enough for any well-behaved
// client, so that only a loop exceeds it.
const defaultRateLimit = 1_000_000

// Options configure a server.
type Options struct {
	Home   Home
	Driver driver.New
	// DriverName is the name shown to users.
	DriverName string
	// Speed is the factor of a simulated clock; 1 is real time.
	Speed float64
	// RateLimit is the number of calls per project and minute.
	RateLimit int
	// Workers is the number of devices that are reconciled concurrently.
	Workers int
	Log     *slog.Logger
}

// Server is a running metal API. Serve its Handler.
type Server struct {
	store    *store.Store
	driver   driver.Driver
	networks driver.Networks
	home     Home
	faults   *fault.Set
	limits   *limits
	log      *slog.Logger
	now      func() time.Time
	devices  *controller
	sealer   *inventory.Sealer
	// inspections are the IDs of servers that wait for an inspection.
	inspections *inspections
	metadata    *http.Server
	// routes dispatches calls.
	routes *http.ServeMux
	// stop ends calls that never end by themselves.
	stop    context.CancelFunc
	stopped context.Context
	running sync.WaitGroup
}

// Open starts the server on a home: it opens the store, starts the driver, and resumes the work of
// an earlier process.
func Open(ctx context.Context, o Options) (*Server, error) {
	o.complete()
	if err := o.Home.prepare(); err != nil {
		return nil, err
	}
	sealer, err := inventory.OpenSealer(o.Home.sealFile())
	if err != nil {
		return nil, err
	}
	st, err := store.Open(o.Home.storeFile())
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("home %q is in use by another metal service: stop it, or choose another --home", o.Home.Dir)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{
		store: st, home: o.Home, log: o.Log, now: time.Now, faults: fault.NewSet(),
		limits: &limits{perWindow: o.RateLimit, now: time.Now}, sealer: sealer,
	}
	s.routes = s.newRoutes()
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.devices, s.inspections = newController(s, o.Workers), newInspections(s)
	if err := s.start(ctx, o); err != nil {
		s.stop()
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (o *Options) complete() {
	o.RateLimit = cmp.Or(o.RateLimit, defaultRateLimit)
	o.Workers = cmp.Or(o.Workers, 16)
	o.Speed = cmp.Or(o.Speed, 1)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (s *Server) start(ctx context.Context, o Options) error {
	if err := s.ensureTokens(); err != nil {
		return err
	}
	home := s.home.driverDir(o.DriverName)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("creating the driver's directory: %w", err)
	}
	unused := s.store.Devices().Count(store.Query{}) == 0 && s.store.Blocks().Count(store.Query{}) == 0
	d, err := o.Driver(ctx, driver.Config{Home: home, Sink: s, Log: o.Log, Speed: o.Speed, Unused: unused})
	if err != nil {
		return fmt.Errorf("starting driver %q: %w", o.DriverName, err)
	}
	s.driver, s.networks = d, networksOf(d)
	if err := s.serveMetadata(); err != nil {
		return err
	}
	if err := s.inspections.start(ctx); err != nil {
		return err
	}
	return s.devices.start(ctx)
}

// defaultNetworks are used if the driver has no preference.
var defaultNetworks = driver.Networks{
	Public:   netip.MustParsePrefix("198.18.0.0/15"),
	Private:  netip.MustParsePrefix("10.128.0.0/9"),
	PublicV6: netip.MustParsePrefix("2001:db8::/32"),
}

func networksOf(d driver.Driver) driver.Networks {
	n := d.Networks()
	if !n.Own && !n.Public.IsValid() && !n.Private.IsValid() {
		return defaultNetworks
	}
	return n
}

// HostAddress returns the address at which machines reach this host, or the zero value if they
// can't.
func (s *Server) HostAddress() netip.Addr {
	if h, ok := s.driver.(driver.Host); ok {
		return h.HostAddress()
	}
	return netip.Addr{}
}

// Handler returns the API handler.
func (s *Server) Handler() http.Handler { return s.handler() }

// Faults returns the injected faults.
func (s *Server) Faults() *fault.Set { return s.faults }

// serveMetadata serves the metadata service on the driver's listener, if it has one.
func (s *Server) serveMetadata() error {
	m, ok := s.driver.(driver.Metadata)
	if !ok {
		return nil
	}
	l, err := m.MetadataListener()
	if err != nil {
		return fmt.Errorf("listening for metadata requests: %w", err)
	}
	const most = 30 * time.Second // Machines must not hold connections.
	s.metadata = &http.Server{Handler: s.MetadataHandler(), ReadTimeout: most, WriteTimeout: most, IdleTimeout: most}
	s.running.Go(func() {
		if err := s.metadata.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("metadata service failed", "error", err)
		}
	})
	return nil
}

// Close stops reconciling and releases the home. Devices keep their state.
func (s *Server) Close() error {
	s.stop()
	return s.close()
}

func (s *Server) close() error {
	s.devices.stop()
	s.inspections.stop()
	var errs []error
	if s.metadata != nil {
		errs = append(errs, s.metadata.Close())
	}
	if s.driver != nil {
		errs = append(errs, s.driver.Close())
	}
	s.running.Wait()
	return errors.Join(append(errs, s.store.Close())...)
}

// EndWaits ends calls that an injected fault keeps waiting, so that the server can shut down.
func (s *Server) EndWaits() { s.stop() }

// DefaultProject returns the ID of the default project.
func (s *Server) DefaultProject() (string, error) {
	p, err := s.ensureProject(DefaultProject)
	if err != nil {
		return "", err
	}
	return p.ID, nil
}
