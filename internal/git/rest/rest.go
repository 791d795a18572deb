// Package rest sends requests with JSON to the APIs of forges. It owns limits, credentials and
// errors of these requests; what they mean is known to its callers, internal/git/github and
// internal/git/forge. It never retries and never logs. Start with New.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	timeout   = 30 * time.Second
	maxBody   = 1 << 20
	maxMemory = 16 << 20
)

// Options configure a Client.
type Options struct {
	// BaseURL is the root of the API. It must be https, except on this host.
	BaseURL string
	// Header is sent with each request. It contains the token.
	Header http.Header
	// CA has certificates in PEM, which are trusted besides those of the system.
	CA []byte
	// Secret is removed from errors.
	Secret string
}

// Client sends requests to one API.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
}

// New returns a client without connecting to anything.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	trust, err := pki.ClientConfig(o.CA)
	if err != nil {
		return nil, fmt.Errorf("reading CA of %q: %w", base.Host, err)
	}
	limits := bounded.Limits{Peer: "forge", Body: maxBody, Memory: maxMemory, Timeout: timeout}
	limited := bounded.NewPool(trust, timeout).For(base.Host, limits)
	return &Client{base: base, options: o, http: &http.Client{Transport: limited}}, nil
}

// parseBase doesn't quote the URL in errors, because it may contain a password.
func parseBase(raw string) (*url.URL, error) {
	base, err := url.Parse(raw)
	switch {
	case err != nil, base != nil && base.Host == "":
		return nil, errors.New("URL of the API is malformed")
	case base.User != nil:
		return nil, errors.New("URL of the API contains credentials; provide them separately")
	case base.Scheme != "https" && (base.Scheme != "http" || !isLoopback(base.Hostname())):
		return nil, errors.New("URL of the API is not encrypted; use https://")
	}
	base.RawQuery, base.Fragment = "", ""
	return base, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Request is a request to an API.
type Request struct {
	// Doing starts error messages: "reading repository acme/fleet".
	Doing  string
	Method string
	// Path has segments below the base URL. They may contain slashes.
	Path  []string
	Query url.Values
	// Body is encoded as JSON unless it is nil.
	Body any
}

// Do sends a request and decodes the answer into a value, unless that is nil.
func (c *Client) Do(ctx context.Context, r Request, into any) (http.Header, error) {
	request, err := c.request(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Doing, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Doing, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return response.Header, c.fail(r, response)
	}
	if into == nil {
		return response.Header, nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return nil, fmt.Errorf("%s: reading the answer of %q: %w", r.Doing, c.base.Host, err)
	}
	return response.Header, nil
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, c.url(r), body)
	if err != nil {
		return nil, err
	}
	request.Header = c.options.Header.Clone()
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// url escapes each segment, so that none can lead to another resource.
func (c *Client) url(r Request) string {
	to := strings.TrimSuffix(c.base.String(), "/")
	for _, segment := range r.Path {
		to += "/" + escape(segment)
	}
	if len(r.Query) > 0 {
		to += "?" + r.Query.Encode()
	}
	return to
}

// escape also escapes dots, which are removed from paths otherwise.
func escape(segment string) string {
	if segment == "." || segment == ".." {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}
