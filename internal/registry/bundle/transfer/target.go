package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// HasManifest implements Target.
func (r *Registry) HasManifest(ctx context.Context, ref Ref) (bool, error) {
	there, repository, err := r.place(ref)
	if err != nil {
		return false, err
	}
	_, err = there.pull.Head(ctx, repository.Digest(ref.Digest))
	if err = explain(err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// HasBlob implements Target.
func (r *Registry) HasBlob(ctx context.Context, ref Ref, d v1.Descriptor) (bool, error) {
	there, repository, err := r.place(ref)
	if err != nil {
		return false, err
	}
	layer, err := there.pull.Layer(ctx, repository.Digest(d.Digest.String()))
	if err != nil {
		return false, explain(err)
	}
	found, err := partial.Exists(layer)
	if err = explain(err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return found, err
}

// PutBlob implements Target.
func (r *Registry) PutBlob(ctx context.Context, ref Ref, b Blob) error {
	repository, err := r.repository(ref)
	if err != nil {
		return err
	}
	if err := r.push.Upload(ctx, repository, &upload{b}); err != nil {
		return fmt.Errorf("pushing %s to %q: %w", b.Digest, repository, explain(err))
	}
	return nil
}

// PutManifest implements Target.
func (r *Registry) PutManifest(ctx context.Context, ref Ref, m Manifest) error {
	repository, err := r.repository(ref)
	if err != nil {
		return err
	}
	var to name.Reference = repository.Digest(m.Digest.String())
	if ref.Tag != "" {
		to = repository.Tag(ref.Tag)
	}
	if err := r.push.Put(ctx, to, taggable{m}); err != nil {
		return fmt.Errorf("pushing the manifest of %q: %w", to, explain(err))
	}
	return nil
}

// Check implements Target.
func (r *Registry) Check(ctx context.Context, ref Ref, d v1.Descriptor) error {
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		ref.Digest = d.Digest.String()
		_, err := r.Manifest(ctx, ref)
		return err
	}
	if d.Size > readBack {
		return r.checkSize(ctx, ref, d)
	}
	body, err := r.Blob(ctx, ref, d)
	if err != nil {
		return err
	}
	content, err := readAll(body, d, readBack)
	if err == nil && hashOf(content) != d.Digest {
		err = ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("reading %s back from %s: %w", d.Digest, r, explain(err))
	}
	return nil
}

func (r *Registry) checkSize(ctx context.Context, ref Ref, d v1.Descriptor) error {
	there, repository, err := r.place(ref)
	if err != nil {
		return err
	}
	layer, err := there.pull.Layer(ctx, repository.Digest(d.Digest.String()))
	if err != nil {
		return explain(err)
	}
	size, err := layer.Size()
	if err == nil && size != d.Size {
		err = fmt.Errorf("%w: got %d bytes, want %d", ErrDamaged, size, d.Size)
	}
	if err != nil {
		return fmt.Errorf("checking the size of %s in %q: %w", d.Digest, repository, explain(err))
	}
	return nil
}

// upload adapts a Blob to the library.
type upload struct{ blob Blob }

// Digest implements v1.Layer.
func (u *upload) Digest() (v1.Hash, error) { return u.blob.Digest, nil }

// DiffID implements v1.Layer. The library doesn't call it.
func (u *upload) DiffID() (v1.Hash, error) { return v1.Hash{}, errors.ErrUnsupported }

// Compressed implements v1.Layer.
func (u *upload) Compressed() (io.ReadCloser, error) { return u.blob.Open() }

// Uncompressed implements v1.Layer. The library doesn't call it.
func (u *upload) Uncompressed() (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

// Size implements v1.Layer.
func (u *upload) Size() (int64, error) { return u.blob.Size, nil }

// MediaType implements v1.Layer.
func (u *upload) MediaType() (types.MediaType, error) { return u.blob.MediaType, nil }

// taggable adapts a Manifest to the library.
type taggable struct{ manifest Manifest }

// RawManifest implements remote.Taggable.
func (t taggable) RawManifest() ([]byte, error) { return bytes.Clone(t.manifest.Content), nil }

// MediaType sets the content type of the request.
func (t taggable) MediaType() (types.MediaType, error) { return t.manifest.MediaType, nil }
