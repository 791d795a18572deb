package webhookcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recheck is how often certificates are checked at least, because the clock may have been set.
const recheck = 10 * time.Minute

// Options configure the storage and the names of certificates.
type Options struct {
	// Namespace holds the Secret.
	Namespace string
	// Names are the DNS names and addresses by which API servers reach the webhooks.
	Names []string
	// Clock is the real one unless a test sets another.
	Clock clock.PassiveClock
}

// Certs is the certificate of one manager process: Ensure obtains it, GetCertificate serves it, and
// a controller keeps it and the CA bundle in the API up to date.
type Certs struct {
	store    store
	injector *injector
	names    []string
	clock    clock.PassiveClock
	current  atomic.Pointer[material]
}

// New returns Certs that only use live requests, as they are needed before any cache is synced.
func New(cfg *rest.Config, o Options) (*Certs, error) {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, err
	}
	i, err := newInjector(cfg)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: SecretName}
	return &Certs{store: store{client: c, key: key}, injector: i, names: o.Names, clock: o.Clock}, nil
}

// Ensure obtains a valid certificate, makes the API server trust it, and only then serves it. It
// returns when to call it again.
//
// It must have succeeded once before the manager starts: listing an object of an old version needs
// the conversion webhook, so caches would wait for certificates that wait for caches.
func (c *Certs) Ensure(ctx context.Context) (time.Duration, error) {
	now := c.clock.Now()
	m, next, err := c.store.settle(ctx, now, c.names, c.current.Load())
	if err != nil {
		return 0, err
	}
	if err := c.injector.inject(ctx, m.ca.PEM()); err != nil {
		return 0, err
	}
	c.current.Store(m)
	return min(next.Sub(now), recheck), nil
}

// GetCertificate implements tls.Config.GetCertificate.
func (c *Certs) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m := c.current.Load()
	if m == nil {
		return nil, errors.New("webhook certificate is not ready yet")
	}
	return &m.leaf.Certificate, nil
}

// Pool returns the CAs that a client of the webhooks has to trust.
func (c *Certs) Pool() *x509.CertPool {
	if m := c.current.Load(); m != nil {
		return m.ca.Pool()
	}
	return x509.NewCertPool()
}

// Reconcile runs on every change of the Secret or a target, and when the next rotation is due.
func (c *Certs) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	after, err := c.Ensure(ctx)
	return ctrl.Result{RequeueAfter: after}, err
}
