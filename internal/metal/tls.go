package metal

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/pki"
)

// CAFile returns the path of the CA that clients of a TLS endpoint trust.
func (h Home) CAFile() string { return h.path("tls", "ca.crt") }

func (h Home) caKeyFile() string { return h.path("tls", "ca.key") }

// caBegin and caLife are the validity of the CA and of what it issues. They don't depend on the
// clock, so a wrong one locks nobody out; trust ends when the home is removed.
var caBegin = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

const caLife = 50 * 365 * 24 * time.Hour

// ServerTLS returns the TLS configuration of a server at the hosts. The certificate is issued now;
// only the CA is kept.
func (h Home) ServerTLS(hosts []string) (*tls.Config, error) {
	ca, err := h.ensureCA()
	if err != nil {
		return nil, err
	}
	template := pki.Template(pkix.Name{CommonName: "drover-metal"}, hosts, caBegin, caLife)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert, key, err := ca.Issue(template)
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate of the metal service: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the metal service: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// ensureCA reads the CA of the home. It creates one only if there is none: clients would trust no
// other. The certificate is written last, so a key without one is of an interrupted start.
func (h Home) ensureCA() (*pki.Authority, error) {
	_, err := os.Stat(h.CAFile())
	if err == nil {
		ca, err := pki.LoadAuthority(h.CAFile(), h.caKeyFile())
		if err != nil {
			return nil, fmt.Errorf("reading the CA of the metal service: %w", err)
		}
		return ca, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the CA of the metal service: %w", err)
	}
	ca, err := pki.NewAuthority("drover-metal", caBegin, caLife)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(h.path("tls"), 0o700); err != nil {
		return nil, fmt.Errorf("creating the CA of the metal service: %w", err)
	}
	err = atomicfile.Write(h.caKeyFile(), ca.Key, 0o600)
	if err == nil {
		err = atomicfile.Write(h.CAFile(), ca.PEM(), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the CA of the metal service: %w", err)
	}
	return ca, nil
}

// TrustedCA returns the CA of the endpoint in PEM, or nil if it has no TLS.
func (e Endpoint) TrustedCA() ([]byte, error) {
	if e.CA == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(e.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the metal service: %w", err)
	}
	return ca, nil
}

// HTTPClient returns a client for the endpoint. It follows no redirects, since they would receive
// the token, too.
func (e Endpoint) HTTPClient() (*http.Client, error) {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ca, err := e.TrustedCA()
	if err != nil || ca == nil {
		return c, err
	}
	pool, err := pki.Pool(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the metal service: %w", err)
	}
	// The transport lives as long as a command, and keeps no connection to a service that restarts.
	c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	return c, nil
}
