// Package client implements the part of the Packet HTTP API that the provider needs: devices,
// elastic addresses, BGP, keys and plans.
//
// It owns requests and the meaning of their outcomes. Every error is an *Error with a Kind for
// callers to decide on; UnknownOutcome marks a request that may have been executed without a proper
// response. The package never retries, never logs and never reads Kubernetes objects; controllers
// decide when to retry. Start with Client, then Kind.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

const (
	defaultTimeout = 30 * time.Second
	// maxBody is far larger than any page, maxMemory than what a page takes once it is decoded, and
	// maxList than what a list takes. They protect the memory against a broken server.
	maxBody   = 16 << 20
	maxMemory = 64 << 20
	maxList   = 256 << 20
	// maxItem is more than a device takes in a list, without what it refers to.
	maxItem = 2 << 10
	// consumer identifies this client to the operators of the API.
	consumer = "drover"
)

// Options configure a client.
type Options struct {
	// URL is the base of all requests, such as "http://127.0.0.1:8800/metal/v1".
	URL string
	// Token authenticates all requests.
	Token string
	// UserAgent names the program.
	UserAgent string
	// CA is the only CA to trust, in PEM; those of the system if empty.
	CA []byte
	// HTTP sends the requests. If nil, a client that trusts CA does.
	HTTP *http.Client
	// Timeout bounds one request; 30 s if zero.
	Timeout time.Duration
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Client sends requests with one token to one API. It is safe for concurrent use.
type Client struct {
	Options
	base *url.URL
	gate gate
}

// New returns a client. It sends nothing.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.URL, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("invalid URL of the Packet API %q: use the form https://host/path", o.URL)
	}
	if base.Scheme == "http" && !loopback(base.Hostname()) {
		return nil, errPlainText
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.HTTP, err = o.sender(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Client{Options: o, base: base}, nil
}

// call is one request.
type call struct {
	method, path string
	query        url.Values
	body         any
}

// do sends the call and decodes the response into out, unless out is nil.
func (c *Client) do(ctx context.Context, r call, out any) error {
	if refusal := c.gate.closed(c.Clock.Now()); refusal != nil {
		return r.fail(refusal)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := c.request(ctx, r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return r.fail(unsent(r.method, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if refusal := classify(answer{method: r.method, path: r.path, status: resp.StatusCode, header: resp.Header, body: body}, c.Clock.Now()); refusal != nil {
		c.gate.close(c.Clock.Now(), refusal)
		return r.fail(refusal)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(body, out)
	}
	if err != nil {
		return r.fail(&Error{Kind: interrupted(r.method), Status: resp.StatusCode, Err: fmt.Errorf("reading the response: %w", err)})
	}
	return nil
}

func (c *Client) request(ctx context.Context, r call) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	target, err := url.Parse(c.base.String() + r.path) // Parts of the path are escaped already.
	if err != nil {
		return nil, err
	}
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Auth-Token", c.Token)
	req.Header.Set("X-Consumer-Token", consumer)
	req.Header.Set("Accept", "application/json")
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

func (r call) fail(err *Error) error {
	err.Method, err.Path = r.method, r.path
	return err
}
