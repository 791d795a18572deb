package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Kinds of artifacts.
const (
	KindBundle = "bundle"
	KindChart  = "chart"
	KindImage  = "image"
)

// ErrNotFound is returned for content that a source doesn't have.
var ErrNotFound = errors.New("not found")

// ErrDamaged is returned for content that doesn't match its digest.
var ErrDamaged = errors.New("content doesn't match its digest")

// Ref refers to a manifest.
type Ref struct {
	Kind string
	// Registry is host[:port][/path], or empty for the registry of the source.
	Registry   string
	Repository string
	// Digest is the digest of the manifest. A source without a digest looks up Tag; a target sets
	// Tag.
	Digest, Tag string
}

// String returns the usual notation of a reference.
func (r Ref) String() string {
	text := r.Repository
	if r.Registry != "" {
		text = r.Registry + "/" + text
	}
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" && (r.Tag == "" || r.Kind == KindImage) {
		text += "@" + r.Digest
	}
	return text
}

// Manifest is a manifest and its encoded content.
type Manifest struct {
	MediaType types.MediaType
	Digest    v1.Hash
	Content   []byte
}

func (m Manifest) descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Content))}
}

func newManifest(mediaType types.MediaType, content []byte) Manifest {
	return Manifest{MediaType: mediaType, Digest: hashOf(content), Content: content}
}

// Source reads manifests and blobs and verifies their digests.
type Source interface {
	// Manifest returns the manifest of a reference, or ErrNotFound.
	Manifest(context.Context, Ref) (Manifest, error)
	// Blob opens a blob of a manifest. Reading damaged content ends with ErrDamaged.
	Blob(context.Context, Ref, v1.Descriptor) (io.ReadCloser, error)
	String() string
}

// Target writes manifests and blobs.
type Target interface {
	HasManifest(context.Context, Ref) (bool, error)
	HasBlob(context.Context, Ref, v1.Descriptor) (bool, error)
	// PutBlob writes a blob. It opens only blobs that don't exist.
	PutBlob(context.Context, Ref, Blob) error
	// PutManifest writes a manifest and sets the tag of the reference, if there is one.
	PutManifest(context.Context, Ref, Manifest) error
	// Check verifies that content was written and matches its digest.
	Check(context.Context, Ref, v1.Descriptor) error
	String() string
}

// Blob is content to write.
type Blob struct {
	v1.Descriptor

	Open func() (io.ReadCloser, error)
}

func hashOf(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sum)}
}

// verified returns a reader that ends with ErrDamaged if the content doesn't match the descriptor.
func verified(from io.ReadCloser, wanted v1.Descriptor) io.ReadCloser {
	return &verifier{from: from, wanted: wanted, sum: sha256.New()}
}

type verifier struct {
	from   io.ReadCloser
	wanted v1.Descriptor
	sum    hash.Hash
	read   int64
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.sum.Write(p[:n])
	v.read += int64(n)
	switch {
	case v.read > v.wanted.Size:
		return n, fmt.Errorf("reading %s: %w: got more than %d bytes", v.wanted.Digest, ErrDamaged, v.wanted.Size)
	case err != nil && v.whole(err) && fmt.Sprintf("%x", v.sum.Sum(nil)) != v.wanted.Digest.Hex:
		return n, fmt.Errorf("reading %s: %w: got %d of %d bytes", v.wanted.Digest, ErrDamaged, v.read, v.wanted.Size)
	default:
		return n, err
	}
}

// whole reports whether all content was read. The library underneath reports damaged content with
// errors of its own.
func (v *verifier) whole(err error) bool { return errors.Is(err, io.EOF) || v.read == v.wanted.Size }

func (v *verifier) Close() error { return v.from.Close() }

// readAll reads content whose size doesn't exceed the limit.
func readAll(from io.ReadCloser, wanted v1.Descriptor, limit int64) ([]byte, error) {
	defer from.Close()
	if wanted.Size > limit {
		return nil, fmt.Errorf("%s is %d bytes, more than the limit of %d", wanted.Digest, wanted.Size, limit)
	}
	return io.ReadAll(verified(from, wanted))
}
