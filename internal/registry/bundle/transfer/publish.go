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

// Publication is a bundle that is to be put into a registry.
type Publication struct {
	Bundle *packagesv1.PackageBundle
	// Charts go with it. Those of the bundle that are not among them must be in the registry.
	Charts []*registry.Chart
	// Repository is that of bundles.
	Repository string
	Tell       func(Sent)
}

// Publish puts a bundle into a registry, with charts. What is wrong with it is told before anything is written.
func Publish(ctx context.Context, to *Registry, p Publication) (*Copied, error) {
	made := NewMemory()
	for _, chart := range p.Charts {
		if _, err := made.AddChart(chart); err != nil {
			return nil, err
		}
	}
	a, err := newArtefact(p.Bundle)
	if err != nil {
		return nil, err
	}
	ref := Ref{Kind: KindBundle, Repository: p.Repository, Tag: p.Bundle.Name}
	made.addBundle(ref, a)
	fetched, err := Fetch(ctx, made, ref)
	if err != nil {
		return nil, err
	}
	c := &Copier{From: &beside{Memory: made, registry: to}, To: to, Repository: p.Repository, SkipImages: true, AsItIs: true, Tell: p.Tell}
	result, err := c.Copy(ctx, fetched)
	if err != nil {
		return result, fmt.Errorf("publishing bundle %s: %w", p.Bundle.Name, err)
	}
	return result, nil
}

// beside is what was made, and what the registry has already.
type beside struct {
	*Memory

	registry *Registry
}

// String implements Source.
func (b *beside) String() string { return "the charts that were given, nor in " + b.registry.String() }

// Manifest implements Source.
func (b *beside) Manifest(ctx context.Context, ref Ref) (Manifest, error) {
	m, err := b.Memory.Manifest(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return b.registry.Manifest(ctx, ref)
	}
	return m, err
}

// Blob implements Source.
func (b *beside) Blob(ctx context.Context, ref Ref, d v1.Descriptor) (io.ReadCloser, error) {
	body, err := b.Memory.Blob(ctx, ref, d)
	if errors.Is(err, ErrNotFound) {
		return b.registry.Blob(ctx, ref, d)
	}
	return body, err
}
