package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// ErrNoCertificate is returned for PEM data that contains no certificate.
var ErrNoCertificate = errors.New("no certificate found")

// Pool returns a pool that trusts only the certificates in PEM data.
func Pool(ca []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, ErrNoCertificate
	}
	return pool, nil
}

// ClientConfig returns the TLS configuration of a client that trusts the system's certificates and,
// unless it is empty, those in PEM data.
func ClientConfig(ca []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // some systems have no pool
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(ca) {
		return nil, ErrNoCertificate
	}
	config.RootCAs = pool
	return config, nil
}
