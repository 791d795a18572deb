package plane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// prober queries health endpoints on loopback. It does not verify certificates: it sends no
// secrets, the result only ends a wait, and a renewed certificate must not make a component look
// dead.
type prober struct {
	client *http.Client
}

// newProber presents the client certificate of etcd to servers that ask for it.
func newProber(h Home) *prober {
	config := &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // see the type's comment
		GetClientCertificate: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(h.certFile("etcd-client"), h.keyFile("etcd-client"))
			if err != nil || asked.SupportsCertificate(&cert) != nil {
				return &tls.Certificate{}, err
			}
			return &cert, nil
		},
	}
	return &prober{client: &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}}
}

func (p *prober) get(ctx context.Context, url string) error {
	return p.read(ctx, url, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
}

func (p *prober) getJSON(ctx context.Context, url string, v any) error {
	return p.read(ctx, url, func(r io.Reader) error { return json.NewDecoder(r).Decode(v) })
}

func (p *prober) read(ctx context.Context, url string, body func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responded with %s", url, res.Status)
	}
	return body(io.LimitReader(res.Body, 1<<16))
}
