package source

import (
	"context"
	"errors"
	"fmt"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// errNoName is returned for artifacts that aren't bundles.
var errNoName = errors.New("unmarshalling package bundle: no name")

// download downloads a bundle by digest. It verifies the digests of the manifest and the layer.
func (b *Bundles) download(ctx context.Context, p place, digest string) (*packagesv1.PackageBundle, error) {
	text, err := b.documents.Manifest(ctx, p.ref, digest)
	if err != nil {
		return nil, fmt.Errorf("fetch manifest: %q: %w", p, err)
	}
	layer, err := bundle.Layer(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", p, err)
	}
	data, err := b.documents.Blob(ctx, p.ref, layer, bundle.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("fetch blob: %q: %w", p, err)
	}
	parsed, err := bundle.Parse(data)
	if err == nil && parsed.Name == "" {
		err = errNoName
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", p, err)
	}
	return parsed, nil
}
