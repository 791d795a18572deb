// Package pki issues and reads certificates and keys for the embedded plane, the webhooks and the
// registry. It decides neither who gets a certificate nor for how long, and it writes no files.
// Start with NewAuthority.
package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"time"
)

// Authority is a CA.
type Authority struct {
	// Certs contains its own certificate, followed by those of earlier CAs that are still trusted.
	Certs []*x509.Certificate
	// Key is its private key in PEM.
	Key    []byte
	signer crypto.Signer
}

// NewAuthority creates a self-signed CA that issues certificates for servers and clients, not for
// other CAs.
func NewAuthority(name string, now time.Time, life time.Duration) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	signer, err := ParseKey(key)
	if err != nil {
		return nil, err
	}
	cert, err := selfSign(pkix.Name{CommonName: name}, signer, now, life)
	return &Authority{Certs: []*x509.Certificate{cert}, Key: key, signer: signer}, err
}

// Renew returns the authority with a certificate of its own that is not due, an earlier one if it
// has one. Name and key stay the same: whoever trusts one of its certificates trusts what it
// issues.
func (a *Authority) Renew(now time.Time, life time.Duration) (*Authority, error) {
	own := a.Certs[0]
	usable := func(c *x509.Certificate) bool {
		return bytes.Equal(c.RawSubjectPublicKeyInfo, own.RawSubjectPublicKeyInfo) && bytes.Equal(c.RawSubject, own.RawSubject) && !Due(c, now)
	}
	if i := slices.IndexFunc(a.Certs, usable); i >= 0 {
		own = a.Certs[i]
	} else {
		var err error
		if own, err = selfSign(own.Subject, a.signer, now, life); err != nil {
			return nil, err
		}
	}
	next := &Authority{Certs: []*x509.Certificate{own}, Key: a.Key, signer: a.signer}
	next.Trust(slices.DeleteFunc(slices.Clone(a.Certs), own.Equal), now)
	return next, nil
}

// selfSign creates a certificate of a CA.
func selfSign(name pkix.Name, signer crypto.Signer, now time.Time, life time.Duration) (*x509.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               name,
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("creating authority %q: %w", name.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// ParseAuthority parses a CA from PEM. The key must be that of the first certificate.
func ParseAuthority(cert, key []byte) (*Authority, error) {
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return nil, err
	}
	certs, err := ParseCerts(cert)
	if err != nil {
		return nil, err
	}
	if len(certs) == 0 {
		return nil, errors.New("no PEM block with a certificate")
	}
	signer, err := ParseKey(key)
	return &Authority{Certs: certs, Key: key, signer: signer}, err
}

// LoadAuthority reads a CA from two files.
func LoadAuthority(certFile, keyFile string) (*Authority, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(cert, key)
}

// Trust adds earlier CAs that have not expired.
func (a *Authority) Trust(earlier []*x509.Certificate, now time.Time) {
	for _, c := range earlier {
		if now.Before(c.NotAfter) {
			a.Certs = append(a.Certs, c)
		}
	}
}

// PEM returns the certificates to trust.
func (a *Authority) PEM() []byte {
	var out []byte
	for _, c := range a.Certs {
		out = append(out, encodeCert(c.Raw)...)
	}
	return out
}

// Pool returns the certificates to trust, for a tls.Config.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range a.Certs {
		pool.AddCert(c)
	}
	return pool
}

// Issue signs a certificate for a new key, and returns both in PEM. It sets the template's serial
// number.
func (a *Authority) Issue(template *x509.Certificate) (cert, key []byte, err error) {
	key, err = NewKey()
	if err != nil {
		return nil, nil, err
	}
	signer, err := ParseKey(key)
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial()
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certs[0], signer.Public(), a.signer)
	if err != nil {
		return nil, nil, err
	}
	return encodeCert(der), key, nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // the system's randomness never fails on Linux
	}
	return n.Add(n, big.NewInt(1))
}
