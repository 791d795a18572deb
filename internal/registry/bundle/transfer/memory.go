package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drover-dev/drover/internal/registry"
)

// Memory is a source that holds its content in memory.
type Memory struct {
	tags    map[string]v1.Hash
	content map[v1.Hash][]byte
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{tags: map[string]v1.Hash{}, content: map[v1.Hash][]byte{}}
}

// AddChart adds the content of a chart and returns the digest of its manifest.
func (m *Memory) AddChart(chart *registry.Chart) (string, error) {
	content, err := chart.Content()
	if err != nil {
		return "", err
	}
	for _, blob := range content.Blobs {
		m.content[hashOf(blob)] = blob
	}
	m.content[hashOf(content.Manifest)] = content.Manifest
	return hashOf(content.Manifest).String(), nil
}

func (m *Memory) addBundle(ref Ref, b *bundleArtifact) {
	m.content[hashOf(b.config)] = b.config
	m.content[hashOf(b.layer)] = b.layer
	m.content[b.manifest.Digest] = b.manifest.Content
	m.tags[ref.Tag] = b.manifest.Digest
}

// String implements Source.
func (m *Memory) String() string { return "memory" }

// Manifest implements Source.
func (m *Memory) Manifest(_ context.Context, ref Ref) (Manifest, error) {
	digest := m.tags[ref.Tag]
	if ref.Digest != "" {
		var err error
		if digest, err = v1.NewHash(ref.Digest); err != nil {
			return Manifest{}, fmt.Errorf("invalid digest %q", ref.Digest)
		}
	}
	content, ok := m.content[digest]
	if !ok {
		return Manifest{}, fmt.Errorf("%s: %w", ref, ErrNotFound)
	}
	return newManifest(types.OCIManifestSchema1, content), nil
}

// Blob implements Source.
func (m *Memory) Blob(_ context.Context, ref Ref, d v1.Descriptor) (io.ReadCloser, error) {
	content, ok := m.content[d.Digest]
	if !ok {
		return nil, fmt.Errorf("%s of %s: %w", d.Digest, ref, ErrNotFound)
	}
	return verified(io.NopCloser(bytes.NewReader(content)), d), nil
}
