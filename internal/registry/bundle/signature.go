package bundle

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// ErrUnsigned is returned for a bundle without a signature.
var ErrUnsigned = errors.New("Missing signature") //nolint:staticcheck // existing scripts match this text

// Verify verifies that one of the keys signed the bundle. It ignores finalizers, owners and labels
// that were added after signing.
func Verify(b *packagesv1.PackageBundle, keys Keys) error {
	_, err := SignedBy(b, keys)
	return err
}

// SignedBy returns the key that signed the bundle.
func SignedBy(b *packagesv1.PackageBundle, keys Keys) (Key, error) {
	encoded := b.Annotations[packagesv1.SignatureAnnotation]
	if encoded == "" {
		return Key{}, ErrUnsigned
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return Key{}, errors.New("signature in metadata isn't base64 encoded")
	}
	if len(keys) == 0 {
		return Key{}, errors.New("no public key is configured to verify the signature")
	}
	for form, err := range canonicalForms(b) {
		if err != nil {
			return Key{}, err
		}
		if key, ok := keys.SignerOf(form, signature); ok {
			return key, nil
		}
	}
	return Key{}, fmt.Errorf("The signature is invalid for the configured public key: %s", keys) //nolint:staticcheck // existing scripts match this text
}

// SignerOf returns the key that signed a text.
func (k Keys) SignerOf(text, signature []byte) (Key, bool) {
	digest := sha256.Sum256(text)
	for _, key := range k {
		if ecdsa.VerifyASN1(key.public, digest[:], signature) {
			return key, true
		}
	}
	return Key{}, false
}

// String returns all keys, separated by commas.
func (k Keys) String() string {
	texts := make([]string, 0, len(k))
	for _, key := range k {
		texts = append(texts, key.String())
	}
	return strings.Join(texts, ", ")
}

// Sign sets the signature. The annotation with exclusions must be set before, because it is signed
// too.
func Sign(b *packagesv1.PackageBundle, signer crypto.Signer) error {
	if _, ok := signer.Public().(*ecdsa.PublicKey); !ok {
		return errors.New("signing a bundle requires an ECDSA P-256 key")
	}
	complete(b)
	// The signed form distinguishes a missing map of annotations from an empty one.
	b.Annotations[packagesv1.SignatureAnnotation] = ""
	form, err := Canonical(b)
	if err != nil {
		return fmt.Errorf("signing bundle %q: %w", b.Name, err)
	}
	signature, err := SignText(form, signer)
	if err != nil {
		return fmt.Errorf("signing bundle %q: %w", b.Name, err)
	}
	b.Annotations[packagesv1.SignatureAnnotation] = base64.StdEncoding.EncodeToString(signature)
	return nil
}

// SignText signs a text in the format that SignerOf verifies, which cosign shares.
func SignText(text []byte, signer crypto.Signer) ([]byte, error) {
	digest := sha256.Sum256(text)
	return signer.Sign(rand.Reader, digest[:], crypto.SHA256)
}

// complete adds the signed fields that a bundle has in a cluster.
func complete(b *packagesv1.PackageBundle) {
	b.APIVersion, b.Kind = packagesv1.GroupVersion.String(), kind
	if b.Namespace == "" {
		b.Namespace = packagesv1.Namespace
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
}
