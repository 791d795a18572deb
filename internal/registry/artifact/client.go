package artifact

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/lru"
)

// clients has a pool of connections for each way to trust servers.
type clients struct {
	plainHTTP bool
	pools     *lru.Cache
}

func newClients(plainHTTP bool) *clients {
	return &clients{plainHTTP: plainHTTP, pools: lru.NewWithEvictionFunc(keepClients, func(_ lru.Key, pool any) {
		pool.(*http.Transport).CloseIdleConnections()
	})}
}

func (c *clients) close() { c.pools.Clear() }

// transport opens connections that are trusted as told.
func (c *clients) transport(access *Access) (http.RoundTripper, error) {
	key := access.tls()
	if pool, ok := c.pools.Get(key); ok {
		return &guard{next: pool.(*http.Transport), plainHTTP: c.plainHTTP}, nil
	}
	trust, err := trusted(access)
	if err != nil {
		return nil, err
	}
	pool := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       trust,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   4,
		ForceAttemptHTTP2:     true,
	}
	c.pools.Add(key, pool)
	return &guard{next: pool, plainHTTP: c.plainHTTP}, nil
}

func trusted(access *Access) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: access.SkipTLSVerify} //nolint:gosec // The user asks for it.
	if len(access.CA) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(access.CA) {
		return nil, fmt.Errorf("%w: there is no certificate in the CA", ErrInvalid)
	}
	config.RootCAs = pool
	return config, nil
}

// guard keeps requests from going out in the clear, also after a redirect or because a library thinks that an address is near enough.
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

// login adds credentials to requests that go where they belong. The client of the standard library would send them to subdomains and
// other ports as well.
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

// reply is what came for a request. There is no body if nothing changed.
type reply struct {
	header    http.Header
	unchanged bool
	body      []byte
}

// get makes a request and returns what came, if it is not larger than the limit. The error is fit to be shown.
func get(ctx context.Context, client *http.Client, request request) (*reply, error) {
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, request.address.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is not an address", ErrInvalid, redact(request.address))
	}
	sent.Header = request.header
	response, err := client.Do(sent)
	if err != nil {
		return nil, fmt.Errorf("asking for %q: %w", redact(request.address), bare(err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotModified:
		return &reply{header: response.Header, unchanged: true}, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("asking for %q: %w", redact(request.address), statusError(response.StatusCode))
	}
	body, err := readAll(response.Body, request.limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", redact(request.address), bare(err))
	}
	return &reply{header: response.Header, body: body}, nil
}

// request is for a file of at most so many bytes.
type request struct {
	address *url.URL
	header  http.Header
	limit   int64
}

func readAll(from io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: it is larger than %d bytes", ErrInvalid, limit)
	}
	return data, nil
}

// bare takes the URL out of an error of the standard library. It may be that of a redirect, with credentials in its query.
func bare(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}

// statusError is what an answer means.
func statusError(status int) error {
	meaning := fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrForbidden, meaning)
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("%w: %s", ErrNotFound, meaning)
	default:
		return errors.New(meaning)
	}
}
