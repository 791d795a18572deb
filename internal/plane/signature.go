package plane

import (
	"archive/tar"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"

	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	signatureName  = "manifest.sig"
	signatureLimit = 4 << 10
	// signaturePurpose keeps a signature from being used for anything else.
	signaturePurpose = "drover backup manifest\n"
)

// ErrForeignBackup means that a backup is not from the plane that it should be from.
var ErrForeignBackup = errors.New("not signed by the expected plane")

// signer returns the key of the plane's CA, which signs backups. Everyone who uses the plane has
// its certificate.
func (h Home) signer() (crypto.Signer, error) {
	key, err := pki.LoadKey(h.keyFile("ca"))
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs backups: %w", err)
	}
	return key, nil
}

func manifestDigest(manifest []byte) []byte {
	sum := sha256.Sum256(append([]byte(signaturePurpose), manifest...))
	return sum[:]
}

// signManifest adds the signature of the manifest, which contains the digest of every file.
func signManifest(archive *tar.Writer, m Manifest, manifest []byte, key crypto.Signer) error {
	signature, err := key.Sign(rand.Reader, manifestDigest(manifest), crypto.SHA256)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	if err := archive.WriteHeader(entry(signatureName, int64(len(signature)), m.Created)); err != nil {
		return err
	}
	_, err = archive.Write(signature)
	return err
}

// verifyManifest checks the signature that follows the manifest. Without signers, it only reads it.
func verifyManifest(archive *tar.Reader, m Manifest, manifest []byte, signers []*x509.Certificate) error {
	if m.Format < signedFormat {
		if signers != nil {
			return fmt.Errorf("%w: backups of Drover %s have no signature", ErrForeignBackup, m.Drover)
		}
		return nil
	}
	header, err := archive.Next()
	if err != nil {
		return err
	}
	if header.Name != signatureName || header.Size > signatureLimit {
		return fmt.Errorf("second entry is %q, not the signature", header.Name)
	}
	signature, err := io.ReadAll(archive)
	if err != nil || signers == nil {
		return err
	}
	signed := append([]byte(signaturePurpose), manifest...)
	for _, cert := range signers {
		algorithm := x509.ECDSAWithSHA256
		if cert.PublicKeyAlgorithm == x509.RSA {
			algorithm = x509.SHA256WithRSA
		}
		if cert.CheckSignature(algorithm, signed, signature) == nil {
			return nil
		}
	}
	return ErrForeignBackup
}
