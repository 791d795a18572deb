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

// signature is one of cosign's, in either of its formats.
type signature struct {
	// covers is the text that was signed, and about the digests of manifests that it speaks of.
	covers    []byte
	about     []string
	signature []byte
}

// simple reads the format of cosign 1 and 2: the signature is beside a text that names the manifest.
func simple(text, signed []byte) signature {
	var said struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	_ = json.Unmarshal(text, &said) // What can't be read is about nothing.
	return signature{covers: text, signature: signed, about: []string{said.Critical.Image.Digest}}
}

// What a bundle must have in it to be a signature of an artifact. Statements of other types say something else about it.
const (
	inToto        = "application/vnd.in-toto+json"
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// bundle is the format of cosign 3, as far as signatures with keys need it.
type bundle struct {
	Envelope struct {
		Type       string `json:"payloadType"`
		Payload    []byte `json:"payload"`
		Signatures []struct {
			Signature []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

// bundled reads a bundle: an envelope around a statement about manifests.
func bundled(text []byte) []signature {
	var b bundle
	var said struct {
		Type    string `json:"predicateType"`
		Subject []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(text, &b) != nil || json.Unmarshal(b.Envelope.Payload, &said) != nil {
		return nil
	}
	if b.Envelope.Type != inToto || said.Type != signPredicate {
		return nil
	}
	var about []string
	for _, subject := range said.Subject {
		about = append(about, digestPrefix+subject.Digest["sha256"])
	}
	covers := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(b.Envelope.Type), b.Envelope.Type, len(b.Envelope.Payload), b.Envelope.Payload)
	var found []signature
	for _, s := range b.Envelope.Signatures {
		found = append(found, signature{covers: covers, about: about, signature: s.Signature})
	}
	return found
}

// checkSignatures makes sure that one of them is by a key of ours, and about what has the digest.
func checkSignatures(digest string, signatures []signature, keys map[string][]byte) error {
	public, err := publicKeys(keys)
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(slices.Clone(signatures), func(s signature) bool { return !s.byAny(public) })
	switch {
	case slices.ContainsFunc(ours, func(s signature) bool { return slices.Contains(s.about, digest) }):
		return nil
	case len(signatures) == 0:
		return fmt.Errorf("%w: there is no signature of %s", ErrUnverified, digest)
	case len(ours) == 0:
		return fmt.Errorf("%w: none of %d signatures of %s was made with %s", ErrUnverified, len(signatures), digest, names(keys))
	default:
		return fmt.Errorf("%w: the signature was made for something else than %s", ErrUnverified, digest)
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
