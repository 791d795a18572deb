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

// What a reference is to.
const (
	KindBundle = "bundle"
	KindChart  = "chart"
	KindImage  = "image"
)

// ErrNotFound says that something is not where it was looked for.
var ErrNotFound = errors.New("not found")

// ErrDamaged says that content is not what its digest says.
var ErrDamaged = errors.New("the content is not what its digest says")

// Ref names a manifest.
type Ref struct {
	Kind string
	// Registry is host[:port][/path], and empty for the one that is asked.
	Registry   string
	Repository string
	// Digest is of the manifest. Tag is what it is looked for by if that is not known, and what it gets.
	Digest, Tag string
}

// String is how people write it.
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

// Manifest is one with its content.
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

// Source is where things come from. What it gives is what its digest says.
type Source interface {
	// Manifest gets what a reference is to. The error is ErrNotFound if it is not there.
	Manifest(context.Context, Ref) (Manifest, error)
	// Blob reads what a manifest refers to. Reading ends with ErrDamaged if it is something else.
	Blob(context.Context, Ref, v1.Descriptor) (io.ReadCloser, error)
	String() string
}

// Target is where things go.
type Target interface {
	HasManifest(context.Context, Ref) (bool, error)
	HasBlob(context.Context, Ref, v1.Descriptor) (bool, error)
	// PutBlob opens content only if it is not there.
	PutBlob(context.Context, Ref, Blob) error
	// PutManifest gives it the tag of the reference, if that has one.
	PutManifest(context.Context, Ref, Manifest) error
	// Check looks whether what was put is there, and is what its digest says.
	Check(context.Context, Ref, v1.Descriptor) error
	String() string
}

// Blob is content that can be sent.
type Blob struct {
	v1.Descriptor

	Open func() (io.ReadCloser, error)
}

func hashOf(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sum)}
}

// verified ends with an error if what was read is not what was wanted.
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
		return n, fmt.Errorf("reading %s: %w: there is more than %d bytes", v.wanted.Digest, ErrDamaged, v.wanted.Size)
	case err != nil && v.whole(err) && fmt.Sprintf("%x", v.sum.Sum(nil)) != v.wanted.Digest.Hex:
		return n, fmt.Errorf("reading %s: %w: %d of %d bytes came", v.wanted.Digest, ErrDamaged, v.read, v.wanted.Size)
	default:
		return n, err
	}
}

// whole says that nothing more will come. The library below has its own way to say that what came is wrong.
func (v *verifier) whole(err error) bool { return errors.Is(err, io.EOF) || v.read == v.wanted.Size }

func (v *verifier) Close() error { return v.from.Close() }

// readAll reads content that is not larger than a limit.
func readAll(from io.ReadCloser, wanted v1.Descriptor, limit int64) ([]byte, error) {
	defer from.Close()
	if wanted.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", wanted.Digest, wanted.Size, limit)
	}
	return io.ReadAll(verified(from, wanted))
}
