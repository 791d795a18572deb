package artifact

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/utils/lru"
)

// maxManifest is the maximum size of a manifest.
const maxManifest = 4 << 20

// Documents reads single files that are not packages from registries. It connects as a Store does,
// but caches only connections. It uses PlainHTTP and Trust of the Options.
type Documents struct {
	registries *registries
	trust      map[string]Access
}

// NewDocuments makes no connection.
func NewDocuments(o Options) *Documents {
	return &Documents{registries: &registries{clients: newClients(o.PlainHTTP), pullers: lru.New(keepClients)}, trust: o.Trust}
}

// Close closes idle connections.
func (d *Documents) Close() { d.registries.clients.close() }

// Digest returns the digest of the manifest of a tag, which is the Version of an oci:// Ref. It
// makes one HEAD request.
func (d *Documents) Digest(ctx context.Context, ref Ref) (string, error) {
	p, r, err := d.open(ref)
	if err != nil {
		return "", err
	}
	if _, err := name.NewTag(p.repository.Name() + ":" + r.Version); err != nil || r.Version == "" {
		return "", fmt.Errorf("%w: %q is not a tag", ErrInvalid, r.Version)
	}
	head, err := p.Head(ctx, p.repository.Tag(r.Version))
	if err != nil {
		return "", registryError(err)
	}
	if head.Size > maxManifest {
		return "", fmt.Errorf("%w: its manifest is larger than %d bytes", ErrInvalid, maxManifest)
	}
	return head.Digest.String(), nil
}

// Manifest downloads a manifest and verifies its digest.
func (d *Documents) Manifest(ctx context.Context, ref Ref, digest string) ([]byte, error) {
	p, _, err := d.open(ref)
	if err != nil {
		return nil, err
	}
	if digest, err = wellFormed(digest); err != nil {
		return nil, err
	}
	got, err := p.Get(ctx, p.repository.Digest(digest))
	if err != nil {
		return nil, registryError(err)
	}
	return got.Manifest, nil
}

// Blob downloads a layer of a manifest, of at most limit bytes, and verifies its digest.
func (d *Documents) Blob(ctx context.Context, ref Ref, layer v1.Descriptor, limit int64) ([]byte, error) {
	p, _, err := d.open(ref)
	if err != nil {
		return nil, err
	}
	digest, err := wellFormed(layer.Digest.String())
	if err != nil {
		return nil, err
	}
	if layer.Size > limit {
		return nil, fmt.Errorf("%w: it is larger than %d bytes", ErrInvalid, limit)
	}
	data, err := p.blob(ctx, digest, limit)
	if err != nil {
		return nil, err
	}
	if got := contentDigest(data); got != digest {
		return nil, fmt.Errorf("%w: its content is %s, not %s", ErrInvalid, got, digest)
	}
	return data, nil
}

func (d *Documents) open(ref Ref) (*puller, *reference, error) {
	r, err := parse(trusting(d.trust, ref))
	if err != nil {
		return nil, nil, err
	}
	if !r.oci {
		return nil, nil, fmt.Errorf("%w: %q is not a registry", ErrInvalid, redact(r.base))
	}
	p, err := d.registries.puller(r)
	return p, r, err
}

func wellFormed(digest string) (string, error) {
	if !strings.HasPrefix(digest, digestPrefix) {
		return "", fmt.Errorf("%w: %q is not a sha256", ErrInvalid, digest)
	}
	parsed, ok := parseDigest(digest)
	if !ok {
		return "", fmt.Errorf("%w: %q is not a sha256", ErrInvalid, digest)
	}
	return parsed, nil
}
