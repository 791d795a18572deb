package artifact

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
)

// signature is a signature of cosign in one of its two formats.
type signature struct {
	// covers is the signed text, and about lists the digests of the manifests in it.
	covers    []byte
	about     []string
	signature []byte
}

// simple parses the format of cosign 1 and 2: a text with the digest of the manifest, and its
// signature.
func simple(text, signed []byte) signature {
	var statement struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	_ = json.Unmarshal(text, &statement) // an invalid text is about no manifest
	return signature{covers: text, signature: signed, about: []string{statement.Critical.Image.Digest}}
}

// Types of a bundle that signs an artifact. Other types are attestations.
const (
	inToto        = "application/vnd.in-toto+json"
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// bundle is the part of the format of cosign 3 that signatures with keys use.
type bundle struct {
	Envelope struct {
		Type       string `json:"payloadType"`
		Payload    []byte `json:"payload"`
		Signatures []struct {
			Signature []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

// bundled parses a bundle, which is an envelope with a statement about manifests.
func bundled(text []byte) []signature {
	var b bundle
	var statement struct {
		Type    string `json:"predicateType"`
		Subject []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(text, &b) != nil || json.Unmarshal(b.Envelope.Payload, &statement) != nil {
		return nil
	}
	if b.Envelope.Type != inToto || statement.Type != signPredicate {
		return nil
	}
	var about []string
	for _, subject := range statement.Subject {
		about = append(about, digestPrefix+subject.Digest["sha256"])
	}
	covers := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(b.Envelope.Type), b.Envelope.Type, len(b.Envelope.Payload), b.Envelope.Payload)
	var found []signature
	for _, s := range b.Envelope.Signatures {
		found = append(found, signature{covers: covers, about: about, signature: s.Signature})
	}
	return found
}

// checkSignatures checks that a signature was made with one of the keys for the digest.
func checkSignatures(digest string, signatures []signature, keys map[string][]byte) error {
	public, err := publicKeys(keys)
	if err != nil {
		return err
	}
	trusted := slices.DeleteFunc(slices.Clone(signatures), func(s signature) bool { return !s.byAny(public) })
	switch {
	case slices.ContainsFunc(trusted, func(s signature) bool { return slices.Contains(s.about, digest) }):
		return nil
	case len(signatures) == 0:
		return fmt.Errorf("%w: %s has no signature", ErrUnverified, digest)
	case len(trusted) == 0:
		return fmt.Errorf("%w: none of %d signatures of %s was made with %s", ErrUnverified, len(signatures), digest, names(keys))
	default:
		return fmt.Errorf("%w: no signature is for %s", ErrUnverified, digest)
	}
}

func publicKeys(keys map[string][]byte) ([]crypto.PublicKey, error) {
	var public []crypto.PublicKey
	for name, text := range keys {
		block, _ := pem.Decode(text)
		if block == nil {
			return nil, fmt.Errorf("%w: %q is not a public key in PEM", ErrInvalid, name)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %q is not a public key", ErrInvalid, name)
		}
		public = append(public, key)
	}
	return public, nil
}

func (s signature) byAny(keys []crypto.PublicKey) bool {
	return slices.ContainsFunc(keys, s.by)
}

func (s signature) by(key crypto.PublicKey) bool {
	digest := sha256.Sum256(s.covers)
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, digest[:], s.signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, s.covers, s.signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], s.signature) == nil
	default:
		return false
	}
}
