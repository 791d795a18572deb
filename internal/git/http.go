package git

import (
	"context"
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
	url    string
	client transport.Transport
	auth   transport.AuthMethod
}

func newHTTPWire(at address, c Credentials, l bounded.Limits) (*httpWire, error) {
	trust, err := pki.ClientConfig(c.CA)
	if err != nil {
		return nil, err
	}
	limited := bounded.NewPool(trust, l.Timeout).For(strings.ToLower(at.peer()), l)
	w := &httpWire{url: at.url(), client: githttp.NewClient(&http.Client{Transport: limited})}
	if c.Password != "" {
		w.auth = &githttp.BasicAuth{Username: orDefault(c.Username, defaultUser), Password: c.Password}
	}
	return w, nil
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
	return w.client.NewReceivePackSession(at, w.auth)
}
