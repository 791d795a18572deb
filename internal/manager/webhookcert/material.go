// Package webhookcert issues, serves and rotates the certificates of Drover's webhooks, so that no cert-manager is needed.
//
// It owns one Secret, which all replicas of a manager share, and the caBundle fields of those definitions and webhook
// configurations that carry the inject-ca label. It never touches another field of them, and keeps no file.
//
//	          create                   CA due                1h later              1h later
//	(nothing) ──────► CA1, leaf by CA1 ──────► CA2+CA1, leaf by CA1 ──► CA2+CA1, leaf by CA2 ──► CA2, leaf by CA2
//
// The API server hence trusts a CA for an hour before it meets a certificate of it. Start with Certs in certs.go; the pure
// decision about what to do next is in plan.go.
package webhookcert

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret. The leaf's are those of any TLS Secret.
const (
	keyCABundle = "ca.crt"
	keyCAKey    = "ca.key"
	keyLeaf     = corev1.TLSCertKey
	keyLeafKey  = corev1.TLSPrivateKeyKey
)

// material is everything the Secret holds.
type material struct {
	// cas are the trusted CAs, the newest first. Only the newest still issues.
	cas   []*x509.Certificate
	caKey crypto.Signer
	leaf  tls.Certificate
}

// bundle returns all trusted CAs as PEM, the form a caBundle field has.
func (m *material) bundle() []byte {
	var out bytes.Buffer
	for _, ca := range m.cas {
		out.Write(encodeCertificate(ca.Raw))
	}
	return out.Bytes()
}

// encode returns the data of the Secret.
func (m *material) encode() (map[string][]byte, error) {
	caKey, err := encodeKey(m.caKey)
	if err != nil {
		return nil, err
	}
	leafKey, err := encodeKey(m.leaf.PrivateKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyCABundle: m.bundle(),
		keyCAKey:    caKey,
		keyLeaf:     encodeCertificate(m.leaf.Certificate[0]),
		keyLeafKey:  leafKey,
	}, nil
}

// decode is the reverse of encode. It fails on anything that could not be served or issued from.
func decode(data map[string][]byte) (*material, error) {
	m := &material{}
	for rest := data[keyCABundle]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parsing %q: %w", keyCABundle, err)
		}
		m.cas = append(m.cas, ca)
	}
	if len(m.cas) == 0 {
		return nil, fmt.Errorf("parsing %q: no certificate", keyCABundle)
	}
	issuer, err := tls.X509KeyPair(encodeCertificate(m.cas[0].Raw), data[keyCAKey])
	if err != nil {
		return nil, fmt.Errorf("parsing %q: %w", keyCAKey, err)
	}
	m.caKey = issuer.PrivateKey.(crypto.Signer)
	if m.leaf, err = tls.X509KeyPair(data[keyLeaf], data[keyLeafKey]); err != nil {
		return nil, fmt.Errorf("parsing %q: %w", keyLeaf, err)
	}
	if err := m.checkChain(); err != nil {
		return nil, err
	}
	return m, nil
}

// checkChain makes sure that whoever trusts the bundle accepts the leaf, whatever the time is.
func (m *material) checkChain() error {
	for _, ca := range m.cas {
		if m.leaf.Leaf.CheckSignatureFrom(ca) == nil {
			return nil
		}
	}
	return errors.New("serving certificate is signed by none of the CAs in the bundle")
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
