// Package webhookcert issues, serves and rotates the certificates of Drover's webhooks, so that no
// cert-manager is needed.
//
// It owns one Secret, which all replicas of a manager share, and the caBundle fields of those CRDs
// and webhook configurations that carry the inject-ca label. It never touches another field of
// them, and keeps no files.
//
//	          create                   CA due                        1h later
//	(nothing) ──────► CA1, leaf by CA1 ──────► CA2+CA1, leaf by CA1 ──────────► CA2+CA1, leaf by CA2
//	                                                                1h later
//	                                                                ──────────► CA2, leaf by CA2
//
// The API server therefore trusts a CA for an hour before it sees a certificate of it. Start with
// Certs in certs.go; the pure decision about the next step is in plan.go.
package webhookcert

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/base/pki"
)

// Keys of the Secret. The leaf's are those of any TLS Secret.
const (
	keyCABundle = "ca.crt"
	keyCAKey    = "ca.key"
	keyLeaf     = corev1.TLSCertKey
	keyLeafKey  = corev1.TLSPrivateKeyKey
)

// material is the content of the Secret.
type material struct {
	// ca issues certificates. It trusts itself and those before it, the newest first.
	ca   *pki.Authority
	leaf pair
}

// encode returns the data of the Secret.
func (m *material) encode() map[string][]byte {
	return map[string][]byte{
		keyCABundle: m.ca.PEM(),
		keyCAKey:    m.ca.Key,
		keyLeaf:     m.leaf.certPEM,
		keyLeafKey:  m.leaf.keyPEM,
	}
}

// decode is the reverse of encode. It rejects material that can't be served or issued from.
func decode(data map[string][]byte) (*material, error) {
	ca, err := pki.ParseAuthority(data[keyCABundle], data[keyCAKey])
	if err != nil {
		return nil, fmt.Errorf("parsing %q and %q: %w", keyCABundle, keyCAKey, err)
	}
	leaf, err := parsePair(data[keyLeaf], data[keyLeafKey])
	if err != nil {
		return nil, fmt.Errorf("parsing %q and %q: %w", keyLeaf, keyLeafKey, err)
	}
	m := &material{ca: ca, leaf: leaf}
	if err := m.checkChain(); err != nil {
		return m, err
	}
	return m, nil
}

// checkChain verifies that clients that trust the bundle accept the leaf, regardless of the time.
func (m *material) checkChain() error {
	for _, ca := range m.ca.Certs {
		if m.leaf.Leaf.CheckSignatureFrom(ca) == nil {
			return nil
		}
	}
	return errors.New("serving certificate is signed by none of the CAs in the bundle")
}
