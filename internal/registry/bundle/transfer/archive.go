package transfer

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	blobsDir = "blobs/sha256/"
	// kindAnnotation is the kind of an entry in the index.
	kindAnnotation = "dev.drover.kind"
	maxIndex       = 16 << 20
	tarBlock       = 512
)

// Archive is a source that reads a tar file with an OCI layout in place.
type Archive struct {
	path  string
	file  *os.File
	blobs map[string]section
	index []v1.Descriptor
}

// section is the position of an entry's content.
type section struct{ offset, size int64 }

// OpenArchive opens an archive and reads its index.
func OpenArchive(file string) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	}
	a := &Archive{path: file, file: f, blobs: map[string]section{}}
	if err := a.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading archive %q: %w", file, err), f.Close())
	}
	return a, nil
}

func (a *Archive) read() error {
	entries := tar.NewReader(a.file)
	found := false
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("not a bundle archive, or truncated: %w", err)
		}
		switch entry := path.Clean(header.Name); {
		case entry == ocispec.ImageIndexFile:
			if a.index, err = readIndex(entries); err != nil {
				return err
			}
			found = true
		case strings.HasPrefix(entry, blobsDir) && header.Typeflag == tar.TypeReg:
			offset, err := a.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			a.blobs[strings.TrimPrefix(entry, blobsDir)] = section{offset, header.Size}
		}
	}
	if !found {
		return errors.New("not a bundle archive, or unfinished: index.json not found")
	}
	return nil
}

func readIndex(from io.Reader) ([]v1.Descriptor, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxIndex))
	if err != nil {
		return nil, fmt.Errorf("reading index.json: %w", err)
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("reading index.json: %w", err)
	}
	return index.Manifests, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.file.Close() }

// String returns the name of the file.
func (a *Archive) String() string { return a.path }

// Bundles returns the references of the bundles in the archive.
func (a *Archive) Bundles() []Ref {
	var out []Ref
	for _, d := range a.index {
		if d.Annotations[kindAnnotation] != KindBundle {
			continue
		}
		name := d.Annotations[ocispec.AnnotationRefName]
		if i := strings.LastIndex(name, ":"); i >= 0 {
			out = append(out, Ref{Kind: KindBundle, Repository: name[:i], Tag: name[i+1:], Digest: d.Digest.String()})
		}
	}
	return out
}

// Manifest implements Source.
func (a *Archive) Manifest(ctx context.Context, ref Ref) (Manifest, error) {
	d, err := a.descriptor(ref)
	if err != nil {
		return Manifest{}, err
	}
	body, err := a.Blob(ctx, ref, d)
	if err != nil {
		return Manifest{}, err
	}
	content, err := readAll(body, d, maxIndex)
	if err != nil {
		return Manifest{}, fmt.Errorf("reading %s: %w", ref, err)
	}
	if d.MediaType == "" {
		d.MediaType = mediaType(content)
	}
	return Manifest{MediaType: d.MediaType, Digest: d.Digest, Content: content}, nil
}

// descriptor finds a manifest, also one that is not in the index.
func (a *Archive) descriptor(ref Ref) (v1.Descriptor, error) {
	for _, d := range a.index {
		if ref.Digest == d.Digest.String() || ref.Digest == "" && d.Annotations[ocispec.AnnotationRefName] == ref.Repository+":"+ref.Tag {
			return d, nil
		}
	}
	digest, err := v1.NewHash(ref.Digest)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("%s in %q: %w", ref, a.path, ErrNotFound)
	}
	there, ok := a.blobs[digest.Hex]
	if !ok {
		return v1.Descriptor{}, fmt.Errorf("%s in %q: %w", ref, a.path, ErrNotFound)
	}
	return v1.Descriptor{Digest: digest, Size: there.size}, nil
}

// Blob implements Source.
func (a *Archive) Blob(_ context.Context, ref Ref, d v1.Descriptor) (io.ReadCloser, error) {
	there, ok := a.blobs[d.Digest.Hex]
	if !ok {
		return nil, fmt.Errorf("%s of %s in %q: %w", d.Digest, ref, a.path, ErrNotFound)
	}
	return verified(io.NopCloser(io.NewSectionReader(a.file, there.offset, there.size)), d), nil
}

// check verifies all blobs.
func (a *Archive) check() error {
	for hex, there := range a.blobs {
		d := v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: hex}, Size: there.size}
		body := verified(io.NopCloser(io.NewSectionReader(a.file, there.offset, there.size)), d)
		if _, err := io.Copy(io.Discard, body); err != nil {
			return fmt.Errorf("checking archive %q: %w", a.path, err)
		}
	}
	return nil
}
