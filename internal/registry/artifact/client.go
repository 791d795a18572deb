package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	// silence is how long a server may take to begin its response.
	silence = 30 * time.Second
	// responseTimeout limits a request and its response.
	responseTimeout = 2 * time.Minute
)

// clients has one connection pool per TLS configuration.
type clients struct {
	plainHTTP bool
	pools     *lru.Cache
}

func newClients(plainHTTP bool) *clients {
	return &clients{plainHTTP: plainHTTP, pools: lru.NewWithEvictionFunc(keepClients, func(_ lru.Key, pool any) {
		pool.(*bounded.Pool).CloseIdleConnections()
	})}
}

func (c *clients) close() { c.pools.Clear() }

// limits apply to all responses. Work that is shared ends earlier, see Options.Timeout.
func limits(peer string) bounded.Limits {
	return bounded.Limits{Peer: peer, Body: maxArchive, Timeout: responseTimeout}
}

// repository returns a transport to a chart repository, with the TLS settings of an Access.
func (c *clients) repository(access *Access, host string) (http.RoundTripper, error) {
	pool, err := c.pool(access)
	if err != nil {
		return nil, err
	}
	return &guard{next: pool.For(host, limits("chart repository")), plainHTTP: c.plainHTTP}, nil
}

// registry returns a transport to a registry, with the TLS settings of an Access.
func (c *clients) registry(access *Access, host string) (http.RoundTripper, error) {
	pool, err := c.pool(access)
	if err != nil {
		return nil, err
	}
	return &guard{next: pool.ForRegistry(host, limits("registry")), plainHTTP: c.plainHTTP}, nil
}

func (c *clients) pool(access *Access) (*bounded.Pool, error) {
	key := access.tls()
	if pool, ok := c.pools.Get(key); ok {
		return pool.(*bounded.Pool), nil
	}
	trust, err := pki.ClientConfig(access.CA)
	if err != nil {
		return nil, fmt.Errorf("%w: reading the CA: %w", ErrInvalid, err)
	}
	trust.InsecureSkipVerify = access.SkipTLSVerify // the user requested it
	pool := bounded.NewPool(trust, silence)
	c.pools.Add(key, pool)
	return pool, nil
}

// guard rejects requests over plain HTTP, including redirects and the fallback that a library uses
// for addresses on the local network.
type guard struct {
	next      http.RoundTripper
	plainHTTP bool
}

func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !g.plainHTTP {
		return nil, fmt.Errorf("%w: plain HTTP to %q is not allowed", ErrInvalid, r.URL.Host)
	}
	return g.next.RoundTrip(r)
}

// login adds credentials to requests for their own host and port. The client of the standard
// library would send them to subdomains and other ports as well.
type login struct {
	next               http.RoundTripper
	to                 *url.URL
	username, password string
}

func (l *login) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.username == "" || r.URL.Scheme != l.to.Scheme || r.URL.Host != l.to.Host {
		return l.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.SetBasicAuth(l.username, l.password)
	return l.next.RoundTrip(r)
}

// reply is the response to a request. It has no body if it is unchanged.
type reply struct {
	header    http.Header
	unchanged bool
}

// get makes a request and has read read the body of the response, unless it is unchanged. The error
// contains no credentials.
func get(ctx context.Context, client *http.Client, request request, read func(io.Reader) error) (*reply, error) {
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, request.address.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: invalid URL %q", ErrInvalid, redact(request.address))
	}
	sent.Header = request.header
	response, err := client.Do(sent)
	if err != nil {
		return nil, fmt.Errorf("requesting %q: %w", redact(request.address), withoutURL(err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotModified:
		return &reply{header: response.Header, unchanged: true}, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("requesting %q: %w", redact(request.address), statusError(response.StatusCode))
	}
	if err := read(response.Body); err != nil {
		return nil, fmt.Errorf("reading %q: %w", redact(request.address), withoutURL(err))
	}
	return &reply{header: response.Header}, nil
}

// request is a request for a file.
type request struct {
	address *url.URL
	header  http.Header
}

func readAll(from io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, tooLarge(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrInvalid, limit)
	}
	return data, nil
}

// tooLarge marks the error about a response that exceeds its limit, which a retry doesn't fix.
func tooLarge(err error) error {
	var large *bounded.TooLargeError
	if errors.As(err, &large) {
		return fmt.Errorf("%w: %w", ErrInvalid, large)
	}
	return err
}

// withoutURL removes the URL from an error of the standard library. A redirect's URL may have
// credentials in its query.
func withoutURL(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}

// statusError converts an HTTP status to an error.
func statusError(status int) error {
	meaning := fmt.Sprintf("the server responded %d %s", status, http.StatusText(status))
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrForbidden, meaning)
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("%w: %s", ErrNotFound, meaning)
	default:
		return errors.New(meaning)
	}
}
