package webhookcert

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	caLifetime   = 2 * 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour
)

// create creates new material.
func create(now time.Time, names []string) (*material, error) {
	m := &material{}
	if err := m.addCA(now); err != nil {
		return nil, err
	}
	if err := m.issueLeaf(now, names); err != nil {
		return nil, err
	}
	return m, nil
}

// addCA puts a new CA in front of the trusted ones. The leaf is unchanged.
func (m *material) addCA(now time.Time) error {
	// Names must differ: a verifier selects candidates by name before it tries keys.
	next, err := pki.NewAuthority(fmt.Sprintf("drover-webhook-ca-%d", now.Unix()), now, caLifetime)
	if err != nil {
		return err
	}
	if m.ca != nil {
		next.Trust(m.ca.Certs, now)
	}
	m.ca = next
	return nil
}

// dropCAs trusts only the newest CA. The authority may be shared and is not changed.
func (m *material) dropCAs() {
	newest := *m.ca
	newest.Certs = newest.Certs[:1:1]
	m.ca = &newest
}

// issueLeaf replaces the serving certificate with one of the newest CA.
func (m *material) issueLeaf(now time.Time, names []string) error {
	template := pki.Template(pkix.Name{CommonName: "drover-webhook"}, names, now, leafLifetime)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert, key, err := m.ca.Issue(template)
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	m.leaf, err = parsePair(cert, key)
	return err
}

// pair is a certificate to serve, and its PEM.
type pair struct {
	tls.Certificate
	certPEM, keyPEM []byte
}

func parsePair(cert, key []byte) (pair, error) {
	parsed, err := tls.X509KeyPair(cert, key)
	return pair{Certificate: parsed, certPEM: cert, keyPEM: key}, err
}
