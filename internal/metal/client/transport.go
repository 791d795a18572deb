package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/pki"
)

// errPlainText rejects an API that would receive the token in clear text.
var errPlainText = errors.New("the URL of the Packet API has no TLS, so others on the network could read the token: " +
	"ask an administrator to use https, and for machines of this host to run `drover up`, then `drover upgrade cluster` for management clusters")

// loopback reports whether requests to a host stay on this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// sender returns what sends requests. It follows no redirects: the next host would receive the
// token, which is only for the API. It limits what the API sends.
func (o Options) sender() (*http.Client, error) {
	var sender http.Client
	switch {
	case o.HTTP != nil:
		sender = *o.HTTP
	case len(o.CA) > 0:
		transport, err := trusting(o.CA)
		if err != nil {
			return nil, err
		}
		sender.Transport = transport
	}
	if sender.Transport == nil {
		sender.Transport = http.DefaultTransport
	}
	sender.Transport = bounded.Transport(sender.Transport, bounded.Limits{
		Peer: "Packet API", Body: maxBody, Memory: maxMemory, Item: maxItem, Timeout: o.Timeout, Elsewhere: true,
	})
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender, nil
}

func trusting(ca []byte) (*http.Transport, error) {
	pool, err := pki.Pool(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the Packet API: %w", err)
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default HTTP transport was replaced")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}
