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
	"os"
	"slices"
	"strings"
)

// Key is a public key that verifies signatures.
type Key struct {
	// Name identifies the key in messages.
	Name   string
	public *ecdsa.PublicKey
}

// String returns the key as base64-encoded PKIX.
func (k Key) String() string {
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		return k.Name // unreachable: a parsed key can be encoded
	}
	return base64.StdEncoding.EncodeToString(der)
}

// Keys are the trusted keys. Several keys allow rotation.
type Keys []Key

// ParseKeys parses named public keys: PEM, which may contain several keys, or base64-encoded PKIX.
func ParseKeys(texts map[string][]byte) (Keys, error) {
	var keys Keys
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		found, err := parseKey(texts[name])
		if err != nil {
			return nil, fmt.Errorf("reading public key %q: %w", name, err)
		}
		for _, public := range found {
			keys = append(keys, Key{Name: name, public: public})
		}
	}
	return keys, nil
}

// ReadKeys reads files with public keys. A key is named after its file.
func ReadKeys(files []string) (Keys, error) {
	texts := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the public key: %w", err)
		}
		texts[file] = text
	}
	return ParseKeys(texts)
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
			return nil, fmt.Errorf("got a %s, not a PUBLIC KEY\nTry: openssl pkey -in FILE -pubout", block.Type)
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
		return nil, errors.New("not an ECDSA P-256 key")
	}
	return public, nil
}

// ReadPrivateKey reads a file with a signing key.
func ReadPrivateKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	key, err := ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading private key %q: %w", file, err)
	}
	return key, nil
}

// ParsePrivateKey parses a signing key in PEM, as written by openssl and `drover bundle keygen`.
// The error never contains key material.
func ParsePrivateKey(text []byte) (*ecdsa.PrivateKey, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("no private key in PEM found")
		}
		var parsed any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the private key is encrypted\nTry: openssl pkcs8 -in FILE")
		default: // openssl writes the curve parameters first
			continue
		}
		private, ok := parsed.(*ecdsa.PrivateKey)
		if err != nil || !ok || private.Curve != elliptic.P256() {
			return nil, errors.New("not an ECDSA P-256 key")
		}
		return private, nil
	}
}
