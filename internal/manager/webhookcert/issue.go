package webhookcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"
)

const (
	caLifetime   = 2 * 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour
	// skew is how far a certificate's validity begins before it was made, for API servers whose clock runs late.
	skew = 5 * time.Minute
)

// create makes material from nothing.
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

// addCA puts a new CA in front of those that are trusted already. The leaf stays as it is.
func (m *material) addCA(now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	// The name tells CAs apart: a verifier picks candidates by name before it tries keys.
	template := certificate(fmt.Sprintf("drover-webhook-ca-%d", now.Unix()), now, caLifetime)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign
	ca, err := sign(template, template, key.Public(), key)
	if err != nil {
		return err
	}
	m.cas = append([]*x509.Certificate{ca}, m.cas...)
	m.caKey = key
	return nil
}

// issueLeaf replaces the serving certificate by one of the newest CA.
func (m *material) issueLeaf(now time.Time, names []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	template := certificate("drover-webhook", now, leafLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, err := sign(template, m.cas[0], key.Public(), m.caKey)
	if err != nil {
		return err
	}
	m.leaf = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	return nil
}

func certificate(name string, now time.Time, lifetime time.Duration) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-skew),
		NotAfter:  now.Add(lifetime),
	}
}

func sign(template, parent *x509.Certificate, public, private any) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, private)
	if err != nil {
		return nil, fmt.Errorf("signing certificate %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}
