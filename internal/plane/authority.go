package plane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
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

// authority signs certificates. Its first certificate is its own, the others
// are of earlier authorities that are still trusted.
type authority struct {
	certs  []*x509.Certificate
	signer crypto.Signer
	key    []byte
}

func newAuthority(name string, now time.Time) (*authority, error) {
	key, err := newKeyPEM()
	if err != nil {
		return nil, err
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-5 * time.Minute),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("making authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{certs: []*x509.Certificate{cert}, signer: signer, key: key}, err
}

func loadAuthority(certFile, keyFile string) (*authority, error) {
	if _, err := loadPair(certFile, keyFile); err != nil {
		return nil, err
	}
	certs, err := loadCerts(certFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	signer, err := parseKey(key)
	return &authority{certs: certs, signer: signer, key: key}, err
}

// trust keeps earlier authorities that have not expired.
func (a *authority) trust(earlier []*x509.Certificate, now time.Time) {
	for _, c := range earlier {
		if now.Before(c.NotAfter) {
			a.certs = append(a.certs, c)
		}
	}
}

func (a *authority) pem() []byte {
	var out []byte
	for _, c := range a.certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// issue signs a certificate for a new key.
func (a *authority) issue(template *x509.Certificate) (cert, key []byte, err error) {
	key, err = newKeyPEM()
	if err != nil {
		return nil, nil, err
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certs[0], signer.Public(), a.signer)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // the system's source of randomness never fails on Linux
	}
	return n.Add(n, big.NewInt(1))
}

func newKeyPEM() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a private key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func loadKey(path string) (crypto.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseKey(data)
}

func parseKey(data []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no PEM block with a private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return signer, nil
}

// loadPair loads the certificate of a pair whose two files belong together.
func loadPair(certFile, keyFile string) (*x509.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
}

func loadCerts(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for block := range pemBlocks(data) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", path, err)
		}
		certs = append(certs, cert)
	}
	return slices.Clip(certs), nil
}

func pemBlocks(data []byte) func(yield func(*pem.Block) bool) {
	return func(yield func(*pem.Block) bool) {
		for {
			block, rest := pem.Decode(data)
			if block == nil || !yield(block) {
				return
			}
			data = rest
		}
	}
}
