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
	// pageSize bounds an answer to a question for repositories.
	pageSize = 1000
)

// Options of a Server. All but Charts are needed.
type Options struct {
	// Dir holds everything. One server at a time may use it.
	Dir string
	// CertFile and KeyFile are read anew when they change.
	CertFile, KeyFile string
	// PasswordFile has the password of User.
	PasswordFile string
	// Charts has a directory for each chart that is offered from the start.
	Charts fs.FS
	Log    *slog.Logger
}

// Server is a registry. Make one with Open.
type Server struct {
	log         *slog.Logger
	store       *store
	app         http.Handler
	certificate *certificate
	password    [passwordSum]byte
	// writes are counted, so that nothing is written while content is removed.
	writes *semaphore.Weighted
}

// Open prepares a registry over a directory, and puts in the charts that it is to offer where they are missing.
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
	passOnLogs(o.Log)
	if s.store, err = openStore(ctx, o.Dir); err != nil {
		return nil, fmt.Errorf("opening registry %q: %w", o.Dir, err)
	}
	if o.Charts != nil {
		if err := s.store.preload(ctx, o.Charts, o.Log); err != nil {
			return nil, fmt.Errorf("filling registry %q: %w", o.Dir, err)
		}
	}
	s.app, err = newApp(ctx, o.Dir)
	return s, err
}

// newApp makes distribution's handler, which has no other way than a panic to say that something is wrong.
func newApp(ctx context.Context, dir string) (app http.Handler, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("opening registry %q: %v", dir, problem)
		}
	}()
	return handlers.NewApp(ctx, settings(dir)), nil
}

// settings leave everything off that works in the background or talks to others.
func settings(dir string) *configuration.Configuration {
	c := &configuration.Configuration{}
	c.Storage = configuration.Storage{
		"filesystem": {"rootdirectory": dir},
		"delete":     {"enabled": true},
		"redirect":   {"disable": true},
		// Uploads are removed by Collect only.
		"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
	}
	c.Catalog.MaxEntries = pageSize
	c.HTTP.Secret = rand.Text()
	return c
}

// Serve answers on all listeners until ctx ends, then lets requests end, for a while.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.get},
		// Clients that don't trust the certificate, or are not TLS at all, are their own trouble.
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
