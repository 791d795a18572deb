package registry

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"golang.org/x/sync/semaphore"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
	// pageSize is the largest number of repositories in one response.
	pageSize = 1000
)

// Options configure a Server. All except Charts are required.
type Options struct {
	// Dir holds all content. Only one server at a time may use it.
	Dir string
	// CertFile and KeyFile are reloaded when they change.
	CertFile, KeyFile string
	// PasswordFile contains the password of User.
	PasswordFile string
	// Charts contains a directory for each chart to preload.
	Charts fs.FS
	Log    *slog.Logger
}

// Server is a registry. Create one with Open.
type Server struct {
	log         *slog.Logger
	store       *store
	app         http.Handler
	certificate *certificate
	password    [passwordSum]byte
	// writes counts the running writes, so that Collect can wait for them.
	writes *semaphore.Weighted
}

// Open opens a registry over a directory and adds missing charts.
func Open(ctx context.Context, o Options) (*Server, error) {
	s := &Server{
		log: o.Log, certificate: &certificate{certFile: o.CertFile, keyFile: o.KeyFile},
		writes: semaphore.NewWeighted(allWrites),
	}
	var err error
	if s.password, err = readPassword(o.PasswordFile); err != nil {
		return nil, err
	}
	if _, err := s.certificate.get(nil); err != nil {
		return nil, err
	}
	redirectLogs(o.Log)
	if s.store, err = openStore(ctx, o.Dir); err != nil {
		return nil, fmt.Errorf("opening registry %q: %w", o.Dir, err)
	}
	if o.Charts != nil {
		if err := s.store.preload(ctx, o.Charts, o.Log); err != nil {
			return nil, fmt.Errorf("preloading charts into registry %q: %w", o.Dir, err)
		}
	}
	s.app, err = newApp(ctx, o.Dir)
	return s, err
}

// newApp returns distribution's handler, whose constructor reports errors by panicking.
func newApp(ctx context.Context, dir string) (app http.Handler, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("opening registry %q: %v", dir, problem)
		}
	}()
	return handlers.NewApp(ctx, settings(dir)), nil
}

// settings disables background work and connections to other servers.
func settings(dir string) *configuration.Configuration {
	c := &configuration.Configuration{}
	c.Storage = configuration.Storage{
		"filesystem": {"rootdirectory": dir},
		"delete":     {"enabled": true},
		"redirect":   {"disable": true},
		// Only Collect deletes uploads.
		"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
	}
	c.Catalog.MaxEntries = pageSize
	c.HTTP.Secret = rand.Text()
	return c
}

// Serve serves on all listeners until ctx ends, and then waits a few seconds for open requests.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.get},
		// Failed TLS handshakes are problems of the client.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.ServeTLS(l, "", "") }()
	}
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serving: %w", err), server.Close())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if server.Shutdown(grace) != nil {
		return server.Close()
	}
	return nil
}
