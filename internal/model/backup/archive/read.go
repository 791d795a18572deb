package archive

import (
	"archive/tar"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Errors about archives.
var (
	// ErrLocked means that no identity or passphrase opens an archive.
	ErrLocked = errors.New("wrong passphrase or identity")
	// ErrDamaged means that an archive is truncated or damaged, or isn't one.
	ErrDamaged = errors.New("truncated, damaged or not from Drover")
	// ErrForeign means that an archive is not from the cluster.
	ErrForeign = errors.New("not from this cluster")
	// ErrNewer means that a later version of Drover wrote an archive.
	ErrNewer = errors.New("written by a newer Drover")
)

// Key opens archives of one cluster.
type Key struct {
	Identities []age.Identity
	// Signers are the CAs of the cluster.
	Signers []*x509.Certificate
}

// Read copies the snapshot of etcd in an archive to w and returns its manifest. Only if there is no
// error, what w received is a complete snapshot of the cluster: the signature follows the content.
func Read(r io.Reader, key Key, w io.Writer) (Manifest, error) { return snapshot.Read(r, key, w) }

// Read is Read for an archive of the kind.
func (k Kind) Read(r io.Reader, key Key, w io.Writer) (Manifest, error) {
	plain, err := age.Decrypt(r, key.Identities...)
	var noMatch *age.NoIdentityMatchError
	if errors.As(err, &noMatch) {
		return Manifest{}, ErrLocked
	}
	if err != nil {
		return Manifest{}, damaged(err)
	}
	packed, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return Manifest{}, damaged(err)
	}
	defer packed.Close()
	m, err := k.readFiles(tar.NewReader(packed), key.Signers, w)
	if err != nil {
		return m, err
	}
	// Only the end of the stream proves that it is complete.
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return m, damaged(err)
	}
	return m, nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

func (k Kind) readFiles(files *tar.Reader, signers []*x509.Certificate, w io.Writer) (Manifest, error) {
	var m Manifest
	manifest, err := readSmall(files, manifestName, manifestLimit)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return m, damaged(err)
	}
	if m.Format > format {
		return m, fmt.Errorf("%w: it has format %d of Drover %s, this Drover reads formats up to %d", ErrNewer, m.Format, m.Drover, format)
	}
	sum, err := k.copyContent(files, m, w)
	if err != nil {
		return m, err
	}
	signature, err := readSmall(files, signatureName, signatureLimit)
	if err != nil {
		return m, err
	}
	if !signedBy(signers, k.signedText(manifest, sum), signature) {
		return m, fmt.Errorf("%w: it is of cluster %q, and the CA of this cluster didn't sign it", ErrForeign, m.Namespace+"/"+m.Cluster)
	}
	return m, nil
}

func readSmall(files *tar.Reader, name string, limit int64) ([]byte, error) {
	h, err := files.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != name || h.Size > limit {
		return nil, fmt.Errorf("%w: found %q of %d bytes instead of %q", ErrDamaged, h.Name, h.Size, name)
	}
	content, err := io.ReadAll(files)
	if err != nil {
		return nil, damaged(err)
	}
	return content, nil
}

// copyContent returns the digest of the content. An error of w is returned as it is.
func (k Kind) copyContent(files *tar.Reader, m Manifest, w io.Writer) ([]byte, error) {
	h, err := files.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != k.name || h.Size != m.Size {
		return nil, fmt.Errorf("%w: found %q of %d bytes instead of a %s of %d", ErrDamaged, h.Name, h.Size, k.noun, m.Size)
	}
	sum := sha256.New()
	out := &sink{w: io.MultiWriter(sum, w)}
	if _, err := io.CopyN(out, files, m.Size); err != nil {
		if out.err != nil {
			return nil, out.err
		}
		return nil, damaged(err)
	}
	return sum.Sum(nil), nil
}

// sink remembers the error of a writer, to tell it from that of a reader.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

func signedBy(signers []*x509.Certificate, text, signature []byte) bool {
	for _, cert := range signers {
		algorithm := x509.ECDSAWithSHA256
		if cert.PublicKeyAlgorithm == x509.RSA {
			algorithm = x509.SHA256WithRSA
		}
		if cert.CheckSignature(algorithm, text, signature) == nil {
			return true
		}
	}
	return false
}
