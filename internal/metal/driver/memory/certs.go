package memory

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

// certLife exceeds the lifetime of any simulated cluster.
const certLife = 10 * 365 * 24 * time.Hour

// authority is a CA of a cluster.
type authority struct{ *pki.Authority }

func caHash(der []byte) (string, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return "", fmt.Errorf("reading the cluster's CA: %w", err)
	}
	return publicKeyHash(cert.RawSubjectPublicKeyInfo), nil
}

func parseAuthority(p keyPair) (*authority, error) {
	a, err := pki.ParseAuthority(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	return &authority{a}, nil
}

// identity is the identity of a server.
type identity struct {
	common string
	// names are additional host names and addresses.
	names []string
}

// serving returns the TLS configuration of a server.
func (a *authority) serving(id identity) (*tls.Config, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: id.common}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range id.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	cert, key, err := a.Issue(template)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %q: %w", id.common, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("loading the certificate for %q: %w", id.common, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientCAs:    a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}, nil
}
