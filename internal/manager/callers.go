package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/base/pki"
)

// clusterCA as --webhook-client-ca means the CA that a cluster publishes for the client certificate
// with which its API server identifies itself to extensions.
const clusterCA = "cluster"

// Keys of the ConfigMap that an API server publishes for its extensions.
const (
	authenticationMap = "extension-apiserver-authentication"
	proxyCAKey        = "requestheader-client-ca-file"
	proxyNamesKey     = "requestheader-allowed-names"
)

// conversionPath is open to everyone: API servers present no certificate for conversions, which
// depend on nothing but their input and have no effect.
const conversionPath = "/convert"

// trust is whose client certificates are accepted.
type trust struct {
	roots *x509.CertPool
	// names are the accepted common names; empty means all.
	names []string
}

// Intervals at which a rejected certificate makes the manager read the CA again, and at which
// rejections are logged. Anyone who reaches the port can cause both.
const (
	rereadInterval = 5 * time.Second
	logInterval    = 5 * time.Second
)

// callers authenticates the clients of webhooks and metrics: by their certificates, and clients of
// webhooks without one by the token of a service account. Without read and tokens, it accepts
// everyone as a client of webhooks. Without read, it accepts nobody's certificate.
type callers struct {
	read func(context.Context) (trust, error)
	// users means that the CA also issues the certificates of the API server's users.
	users bool
	// tokens identifies clients by their tokens, of which those of account are accepted; nil accepts
	// none.
	tokens  authenticator.Request
	account string
	log     logr.Logger
	now     func() time.Time

	mu      sync.Mutex
	current *trust
	readAt  time.Time
	// rejected counts the rejections since loggedAt.
	rejected int
	loggedAt time.Time
}

// newCallers returns what the options say about clients.
func (o Options) newCallers(cfg *rest.Config, log logr.Logger) (*callers, error) {
	c := &callers{account: o.WebhookClientAccount, log: log.WithName("webhook-clients"), now: time.Now}
	if err := c.trustCA(cfg, o); err != nil {
		return nil, err
	}
	if c.account != "" {
		tokens, err := newTokens(cfg)
		if err != nil {
			return nil, err
		}
		c.tokens = tokens
	}
	if c.believesEveryone() {
		c.log.Info("Requests to webhooks are not authenticated; see --webhook-client-ca and --webhook-client-account")
	}
	return c, nil
}

// trustCA sets whose certificates are accepted.
func (c *callers) trustCA(cfg *rest.Config, o Options) error {
	switch o.WebhookClientCA {
	case "":
	case clusterCA:
		kube, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return fmt.Errorf("connecting to the API server: %w", err)
		}
		c.read = func(ctx context.Context) (trust, error) { return publishedTrust(ctx, kube) }
	default:
		c.users = true
		c.read = func(context.Context) (trust, error) { return fileTrust(o.WebhookClientCA, o.WebhookClientName) }
	}
	return nil
}

// believesEveryone reports whether requests to webhooks are not authenticated.
func (c *callers) believesEveryone() bool { return c.read == nil && c.tokens == nil }

// fileTrust trusts the CA in a file, and clients of one name.
func fileTrust(file, name string) (trust, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return trust{}, fmt.Errorf("reading the CA of clients: %w", err)
	}
	roots, err := pki.Pool(data)
	if err != nil {
		return trust{}, fmt.Errorf("reading the CA of clients in %q: %w", file, err)
	}
	return trust{roots: roots, names: []string{name}}, nil
}

// publishedTrust trusts what the API server publishes about itself.
func publishedTrust(ctx context.Context, kube kubernetes.Interface) (trust, error) {
	published, err := kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationMap, metav1.GetOptions{})
	if err != nil {
		return trust{}, fmt.Errorf("reading the CA of the API server's client certificate: %w", err)
	}
	return parsePublished(published)
}

func parsePublished(published *corev1.ConfigMap) (trust, error) {
	roots, err := pki.Pool([]byte(published.Data[proxyCAKey]))
	if err != nil {
		return trust{}, fmt.Errorf("reading %q of ConfigMap %q: %w", proxyCAKey, published.Name, err)
	}
	var names []string
	if err := json.Unmarshal([]byte(published.Data[proxyNamesKey]), &names); err != nil {
		return trust{}, fmt.Errorf("reading %q of ConfigMap %q: %w", proxyNamesKey, published.Name, err)
	}
	return trust{roots: roots, names: names}, nil
}

// errNoCertificate means that a client presented no certificate.
var errNoCertificate = errors.New("a client certificate is required")

// authenticate accepts the API server, by its certificate if it presents one.
func (c *callers) authenticate(r *http.Request) error {
	if c.tokens != nil && (c.read == nil || !hasCertificate(r)) {
		return c.checkToken(r)
	}
	return c.verify(r, trust.checkServer)
}

func hasCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 }

// verify checks the certificate of a client. It reads the CA again before it rejects one, because
// CAs are replaced.
func (c *callers) verify(r *http.Request, check func(trust, []*x509.Certificate) error) error {
	if !hasCertificate(r) {
		return errNoCertificate
	}
	chain := r.TLS.PeerCertificates
	if known := c.known(); known != nil && check(*known, chain) == nil {
		return nil
	}
	fresh, err := c.reread(r.Context())
	if err != nil {
		return err
	}
	return check(fresh, chain)
}

// known returns the CA that was read last, or nil.
func (c *callers) known() *trust {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// reread reads the CA, unless it was read a moment ago.
func (c *callers) reread(ctx context.Context) (trust, error) {
	c.mu.Lock()
	current := c.current
	if current != nil && c.now().Sub(c.readAt) < rereadInterval {
		c.mu.Unlock()
		return *current, nil
	}
	c.readAt = c.now()
	c.mu.Unlock()
	fresh, err := c.read(ctx)
	if err != nil {
		return trust{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = &fresh
	return fresh, nil
}

// checkServer accepts the API server.
func (t trust) checkServer(chain []*x509.Certificate) error {
	if err := t.checkChain(chain); err != nil {
		return err
	}
	if name := chain[0].Subject.CommonName; len(t.names) > 0 && !slices.Contains(t.names, name) {
		return fmt.Errorf("verifying the client certificate: %q is not the API server", name)
	}
	return nil
}

// checkChain accepts whoever has a certificate of the CA.
func (t trust) checkChain(chain []*x509.Certificate) error {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	options := x509.VerifyOptions{Roots: t.roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := chain[0].Verify(options); err != nil {
		return fmt.Errorf("verifying the client certificate: %w", err)
	}
	return nil
}

// guard passes on only requests of the API server.
func (c *callers) guard(path string, next http.Handler) http.Handler {
	if c.believesEveryone() || path == conversionPath {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.authenticate(r); err != nil {
			c.logRejection("Rejected a request to a webhook", r, err)
			http.Error(w, "only the API server may call webhooks", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// logRejection logs a rejected request, and how many there were since the last one was logged.
func (c *callers) logRejection(message string, r *http.Request, reason error) {
	c.mu.Lock()
	c.rejected++
	rejected, due := c.rejected, c.now().Sub(c.loggedAt) >= logInterval
	if due {
		c.rejected, c.loggedAt = 0, c.now()
	}
	c.mu.Unlock()
	if due {
		c.log.Info(message, "path", r.URL.Path, "client", r.RemoteAddr, "reason", reason.Error(), "rejected", rejected)
	}
}

// request makes a server ask clients for certificates. They are verified later, where a rejection
// can be explained and recorded.
func (c *callers) request(config *tls.Config) {
	if c.read != nil {
		config.ClientAuth = tls.RequestClientCert
	}
}
