package bundle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Key is one that may have signed a bundle.
type Key struct {
	// Name is what people call it.
	Name   string
	public *ecdsa.PublicKey
}

// String is the key itself, base64 of PKIX.
func (k Key) String() string {
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		return k.Name // It was parsed, so it can be written.
	}
	return base64.StdEncoding.EncodeToString(der)
}

// Keys are trusted, each of them. Several at once let a key be replaced by another.
type Keys []Key

// ParseKeys reads public keys by their names: PEM, of which there may be several in one, or base64 of PKIX.
func ParseKeys(texts map[string][]byte) (Keys, error) {
	var keys Keys
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		found, err := parseKey(texts[name])
		if err != nil {
			return nil, fmt.Errorf("reading the public key %q: %w", name, err)
		}
		for _, public := range found {
			keys = append(keys, Key{Name: name, public: public})
		}
	}
	return keys, nil
}

func parseKey(text []byte) ([]*ecdsa.PublicKey, error) {
	trimmed := strings.TrimSpace(string(text))
	if !strings.HasPrefix(trimmed, "-----BEGIN ") {
		der, err := base64.StdEncoding.DecodeString(trimmed)
		if err != nil {
			return nil, errors.New("unable to decode the public key (not base 64)")
		}
		public, err := publicKey(der)
		return []*ecdsa.PublicKey{public}, err
	}
	var found []*ecdsa.PublicKey
	for rest := []byte(trimmed); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("it is a %s, not a PUBLIC KEY: `openssl pkey -in FILE -pubout` shows that of a private one", block.Type)
		}
		public, err := publicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, public)
	}
	if len(found) == 0 {
		return nil, errors.New("unable parse the public key (not PKIX)")
	}
	return found, nil
}

func publicKey(der []byte) (*ecdsa.PublicKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("unable parse the public key (not PKIX)")
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil, errors.New("it is not an ECDSA key on the curve P-256")
	}
	return public, nil
}

// ParsePrivateKey reads the key that bundles are signed with: PEM, as openssl and `drover bundle keygen` write it. The error has nothing of
// the key in it.
func ParsePrivateKey(text []byte) (*ecdsa.PrivateKey, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("there is no private key in PEM in it")
		}
		var parsed any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the private key is encrypted: `openssl pkcs8 -in FILE` decrypts it")
		default: // openssl writes the parameters of the curve first.
			continue
		}
		private, ok := parsed.(*ecdsa.PrivateKey)
		if err != nil || !ok || private.Curve != elliptic.P256() {
			return nil, errors.New("it is not an ECDSA key on the curve P-256")
		}
		return private, nil
	}
}
