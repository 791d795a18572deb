package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry"
)

// Publication is a bundle to push to a registry.
type Publication struct {
	Bundle *packagesv1.PackageBundle
	// Charts are pushed with the bundle. The other charts of the bundle must be in the registry.
	Charts []*registry.Chart
	// Repository is the repository of bundles.
	Repository string
	Report     func(Sent)
}

// Publish pushes a bundle and charts to a registry. It reports missing charts before it writes
// anything.
func Publish(ctx context.Context, to *Registry, p Publication) (*Copied, error) {
	made := NewMemory()
	for _, chart := range p.Charts {
		if _, err := made.AddChart(chart); err != nil {
			return nil, err
		}
	}
	a, err := newBundleArtifact(p.Bundle)
	if err != nil {
		return nil, err
	}
	ref := Ref{Kind: KindBundle, Repository: p.Repository, Tag: p.Bundle.Name}
	made.addBundle(ref, a)
	fetched, err := Fetch(ctx, made, ref)
	if err != nil {
		return nil, err
	}
	c := &Copier{From: &overlay{Memory: made, registry: to}, To: to, Repository: p.Repository, SkipImages: true, KeepRegistries: true, Report: p.Report}
	result, err := c.Copy(ctx, fetched)
	if err != nil {
		return result, fmt.Errorf("publishing bundle %s: %w", p.Bundle.Name, err)
	}
	return result, nil
}

// overlay reads from memory first, and then from the registry.
type overlay struct {
	*Memory

	registry *Registry
}

// String implements Source.
func (b *overlay) String() string { return "the given charts or in " + b.registry.String() }

// Manifest implements Source.
func (b *overlay) Manifest(ctx context.Context, ref Ref) (Manifest, error) {
	m, err := b.Memory.Manifest(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return b.registry.Manifest(ctx, ref)
	}
	return m, err
}

// Blob implements Source.
func (b *overlay) Blob(ctx context.Context, ref Ref, d v1.Descriptor) (io.ReadCloser, error) {
	body, err := b.Memory.Blob(ctx, ref, d)
	if errors.Is(err, ErrNotFound) {
		return b.registry.Blob(ctx, ref, d)
	}
	return body, err
}
