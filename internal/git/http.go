package git

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

// httpWire speaks Git over HTTP. Redirects are followed for the first request of a session only,
// as Git does, and without credentials if they lead to another origin.
type httpWire struct {
	url     string
	limited http.RoundTripper
	client  transport.Transport
	auth    transport.AuthMethod
}

func newHTTPWire(at address, c Credentials, l bounded.Limits) (*httpWire, error) {
	trust, err := pki.ClientConfig(c.CA)
	if err != nil {
		return nil, err
	}
	limited := bounded.NewPool(trust, l.Timeout).For(strings.ToLower(at.peer()), l)
	w := &httpWire{url: at.url(), limited: limited, client: newClient(limited)}
	if c.Password != "" {
		w.auth = &githttp.BasicAuth{Username: orDefault(c.Username, defaultUser), Password: c.Password}
	}
	return w, nil
}

func newClient(through http.RoundTripper) transport.Transport {
	return githttp.NewClient(&http.Client{Transport: through})
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// endpoint returns a new endpoint for each session, because a redirect changes it.
func (w *httpWire) endpoint() (*transport.Endpoint, error) { return transport.NewEndpoint(w.url) }

func (w *httpWire) upload(context.Context) (transport.UploadPackSession, error) {
	at, err := w.endpoint()
	if err != nil {
		return nil, err
	}
	return w.client.NewUploadPackSession(at, w.auth)
}

func (w *httpWire) receive(context.Context) (transport.ReceivePackSession, error) {
	at, err := w.endpoint()
	if err != nil {
		return nil, err
	}
	last := &lastBody{next: w.limited}
	session, err := newClient(last).NewReceivePackSession(at, w.auth)
	if err != nil {
		return nil, err
	}
	return &httpReceive{ReceivePackSession: session, last: last}, nil
}

// httpReceive reads the whole answer before it ends. go-git stops after the report, but the server
// runs hooks after that, which would be killed with the connection.
type httpReceive struct {
	transport.ReceivePackSession

	last *lastBody
}

// Close implements transport.Session.
func (s *httpReceive) Close() error {
	if s.last.body != nil {
		_, _ = io.Copy(io.Discard, s.last.body)
		_ = s.last.body.Close()
	}
	return s.ReceivePackSession.Close()
}

// lastBody remembers the body of the last response.
type lastBody struct {
	next http.RoundTripper
	body io.ReadCloser
}

// RoundTrip implements http.RoundTripper.
func (l *lastBody) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil {
		l.body = response.Body
	}
	return response, err
}
