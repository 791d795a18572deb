package bounded

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// MaxDocument is the maximum size of what clients of a registry read into memory: manifests, lists
// of tags and tokens.
const MaxDocument = 4 << 20

// maxDocumentMemory is what such a document may take once it is decoded.
const maxDocumentMemory = 64 << 20

// keptZones is how many peers a Pool remembers. A forgotten one counts as public.
const keptZones = 1024

// Pool connects to registries and repositories, which may lead to other hosts: by redirects, by
// URLs in an index, or by the realm of a token. Where they lead must not be closer to this host
// than they are: a public registry must not make the manager send requests to private addresses,
// and only a peer on this host may lead to another one here.
type Pool struct {
	direct *http.Transport
	// elsewhere has a transport for each zone of the peer that leads there, so that a connection is
	// never shared between peers that may and may not have it.
	elsewhere [onHost + 1]*http.Transport

	mu    sync.Mutex
	zones *lru.Cache // host:port → zone of a peer
}

// NewPool returns a pool without connections. silence is how long a peer may take to begin its
// response, and zero for any time.
func NewPool(trust *tls.Config, silence time.Duration) *Pool {
	p := &Pool{zones: lru.New(keptZones)}
	p.direct = newTransport(trust, silence, p.dial)
	for closest := range p.elsewhere {
		p.elsewhere[closest] = newTransport(trust, silence, func(ctx context.Context, network, address string) (net.Conn, error) {
			if proxy, _ := ctx.Value(proxyKey{}).(string); proxy == address {
				return dialWithin(ctx, onHost, network, address)
			}
			return dialWithin(ctx, zone(closest), network, address)
		})
	}
	return p
}

func newTransport(trust *tls.Config, silence time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial,
		TLSClientConfig:       trust,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: silence,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   4,
		ForceAttemptHTTP2:     true,
	}
}

// CloseIdleConnections closes connections that are not in use.
func (p *Pool) CloseIdleConnections() {
	p.direct.CloseIdleConnections()
	for _, t := range p.elsewhere {
		t.CloseIdleConnections()
	}
}

// For returns a transport for a peer, which is a host with or without a port.
func (p *Pool) For(peer string, l Limits) http.RoundTripper {
	l.Elsewhere = true
	return Transport(&route{pool: p, peer: peer}, l)
}

// ForRegistry is For with the limits only for requests with a context of WithBlob. Everything else
// is at most MaxDocument.
func (p *Pool) ForRegistry(peer string, blobs Limits) http.RoundTripper {
	documents := blobs
	documents.Body, documents.Memory = MaxDocument, maxDocumentMemory
	return &registry{documents: p.For(peer, documents), blobs: p.For(peer, blobs)}
}

type registry struct{ documents, blobs http.RoundTripper }

func (r *registry) RoundTrip(q *http.Request) (*http.Response, error) {
	if isBlob(q) {
		return r.blobs.RoundTrip(q)
	}
	return r.documents.RoundTrip(q)
}

type blobKey struct{}

// WithBlob allows the response to a request for a blob to be as large as a blob, wherever the
// registry redirects it to.
func WithBlob(ctx context.Context, digest string) context.Context {
	return context.WithValue(ctx, blobKey{}, digest)
}

// isBlob reports whether a request is for the blob of its context. Clients request tokens with the
// same context, at a URL that the registry chooses, to which they add a query.
func isBlob(q *http.Request) bool {
	digest, ok := q.Context().Value(blobKey{}).(string)
	if !ok {
		return false
	}
	first := q
	for previous := before(q); previous != nil; previous = before(previous) {
		first = previous
	}
	return first.URL.RawQuery == "" && strings.HasSuffix(first.URL.Path, "/blobs/"+digest)
}

// before returns the request whose response redirected to this one.
func before(q *http.Request) *http.Request {
	if q.Response == nil {
		return nil
	}
	return q.Response.Request
}

// route sends the requests for a peer, and for where it leads.
type route struct {
	pool *Pool
	peer string
}

type proxyKey struct{}

func (r *route) RoundTrip(q *http.Request) (*http.Response, error) {
	if strings.EqualFold(q.URL.Host, r.peer) {
		return r.pool.direct.RoundTrip(q)
	}
	closest := r.pool.zoneOf(address(q.URL.Scheme, r.peer))
	if ip, err := netip.ParseAddr(q.URL.Hostname()); err == nil && zoneOf(ip) > closest {
		return nil, fmt.Errorf("%q leads to %q, which is closer to this host", r.peer, q.URL.Host)
	}
	if proxy, err := http.ProxyFromEnvironment(q); err == nil && proxy != nil {
		q = q.WithContext(context.WithValue(q.Context(), proxyKey{}, address(proxy.Scheme, proxy.Host)))
	}
	return r.pool.elsewhere[closest].RoundTrip(q)
}

// address adds the default port to a host.
func address(scheme, host string) string {
	u := url.URL{Host: host}
	switch {
	case u.Port() != "":
		return host
	case scheme == "http":
		return net.JoinHostPort(u.Hostname(), "80")
	default:
		return net.JoinHostPort(u.Hostname(), "443")
	}
}

// dial connects to a peer and remembers its zone. A peer that was farther away before doesn't come
// closer: the owner of a name decides which address it has next.
func (p *Pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	closest := onHost
	if known, ok := p.zones.Get(address); ok {
		closest = known.(zone)
	}
	conn, err := dialWithin(ctx, closest, network, address)
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := zoneOf(at.Addr())
	if known, ok := p.zones.Get(address); ok {
		seen = min(seen, known.(zone)) // A name may resolve to several addresses, at its owner's will.
	}
	p.zones.Add(address, seen)
	return conn, nil
}

// zoneOf returns the zone of a peer, public if there was no direct connection to it.
func (p *Pool) zoneOf(address string) zone {
	if known, ok := p.zones.Get(address); ok {
		return known.(zone)
	}
	return public
}
