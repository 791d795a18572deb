// Package archive is the format of saved snapshots of etcd, and of backups of management clusters:
// encrypted with age, compressed, and signed with the key of the cluster's CA, so that nothing of
// another cluster is restored. It knows neither where the content comes from nor where archives are
// kept. Start with Write and Read.
//
// An archive is age(zstd(tar)) with these files, which other tools can unpack, too:
//
//	manifest.json  etcd.snapshot or objects.json  signature
package archive

import (
	"archive/tar"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Names and limits of the files.
const (
	manifestName   = "manifest.json"
	signatureName  = "signature"
	manifestLimit  = 1 << 20
	signatureLimit = 4 << 10
	// format is what this version writes, and the newest that it reads.
	format = 1
)

// Kind is what an archive contains.
type Kind struct {
	// name is that of the file.
	name string
	// purpose keeps a signature from being used for anything else.
	purpose string
	// noun is for people.
	noun string
}

// snapshot is the kind of Write and Read.
var snapshot = Kind{name: "etcd.snapshot", purpose: "drover etcd snapshot\n", noun: "snapshot"}

// Objects returns the kind of backups of management clusters.
func Objects() Kind {
	return Kind{name: "objects.json", purpose: "drover management backup\n", noun: "backup"}
}

// Manifest describes an archive.
type Manifest struct {
	Format    int       `json:"format"`
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster"`
	UID       string    `json:"uid"`
	Created   time.Time `json:"created"`
	Size      int64     `json:"size"`
	Etcd      string    `json:"etcd,omitempty"`
	Revision  int64     `json:"revision,omitempty"`
	Drover    string    `json:"drover"`
	// Registry is the address of the registry of a management cluster, which its objects refer to.
	Registry string `json:"registry,omitempty"`
}

// Content is a snapshot or a backup that writes itself.
type Content interface {
	WriteTo(w io.Writer) (int64, error)
}

// Seal is how an archive is signed and encrypted.
type Seal struct {
	Key        crypto.Signer
	Recipients []age.Recipient
}

// Write writes an archive with a snapshot of etcd. It fails if the content does, or has another
// size than the manifest.
func Write(w io.Writer, m Manifest, content Content, seal Seal) error {
	return snapshot.Write(w, m, content, seal)
}

// Write writes an archive of the kind.
func (k Kind) Write(w io.Writer, m Manifest, content Content, seal Seal) error {
	m.Format = format
	return k.write(w, m, content, seal)
}

func (k Kind) write(w io.Writer, m Manifest, content Content, seal Seal) error {
	sealed, err := age.Encrypt(w, seal.Recipients...)
	if err != nil {
		return fmt.Errorf("encrypting: %w", err)
	}
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	files := tar.NewWriter(packed)
	if err := k.writeFiles(files, m, content, seal.Key); err != nil {
		packed.Reset(nil)
		return err
	}
	return errors.Join(files.Close(), packed.Close(), sealed.Close())
}

func (k Kind) writeFiles(files *tar.Writer, m Manifest, content Content, key crypto.Signer) error {
	manifest, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := writeFile(files, m, manifestName, manifest); err != nil {
		return err
	}
	if err := files.WriteHeader(header(m, k.name, m.Size)); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := content.WriteTo(io.MultiWriter(files, sum)); err != nil {
		return err
	}
	signature, err := key.Sign(rand.Reader, digest(k.signedText(manifest, sum.Sum(nil))), crypto.SHA256)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	return writeFile(files, m, signatureName, signature)
}

func writeFile(files *tar.Writer, m Manifest, name string, content []byte) error {
	if err := files.WriteHeader(header(m, name, int64(len(content)))); err != nil {
		return err
	}
	_, err := files.Write(content)
	return err
}

func header(m Manifest, name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: m.Created}
}

// signedText is what is signed: the manifest and the digest of the content.
func (k Kind) signedText(manifest, sum []byte) []byte {
	manifestSum := sha256.Sum256(manifest)
	return fmt.Appendf(nil, "%s%x\n%x\n", k.purpose, manifestSum, sum)
}

func digest(text []byte) []byte {
	sum := sha256.Sum256(text)
	return sum[:]
}
