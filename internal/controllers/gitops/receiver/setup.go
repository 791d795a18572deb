package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Timeouts of connections, which anybody may open.
const (
	headerTimeout   = 5 * time.Second
	requestTimeout  = 30 * time.Second
	shutdownTimeout = 5 * time.Second
	maxHeader       = 16 << 10
)

// Options configure the endpoint.
type Options struct {
	// Addr is where it listens. There is none if it is empty.
	Addr string
	// TLS has the certificate.
	TLS *tls.Config
}

// Setup adds the endpoint to mgr. Every replica serves it.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Addr == "" {
		return nil
	}
	log := mgr.GetLogger().WithName("git-webhooks")
	return mgr.Add(&server{options: o, handler: newHandler(mgr.GetClient(), mgr.GetAPIReader(), log)})
}

// server serves the endpoint until the manager stops.
type server struct {
	options Options
	handler http.Handler
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*server) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *server) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.options.Addr)
	if err != nil {
		return fmt.Errorf("listening for Git webhooks: %w", err)
	}
	return s.serve(ctx, tls.NewListener(listener, s.options.TLS))
}

func (s *server) serve(ctx context.Context, listener net.Listener) error {
	h := &http.Server{Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, MaxHeaderBytes: maxHeader}
	stopped := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = h.Shutdown(ending)
	})
	defer stopped()
	if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving Git webhooks: %w", err)
	}
	return nil
}
