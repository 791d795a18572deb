package transfer

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// configType is the media type that existing tools expect. Although the media type of the layer is
// that of a tar archive, the layer is the file itself.
const configType types.MediaType = "application/vnd.unknown.config.v1+json"

// bundleArtifact is a bundle in the form that registries store. It is reproducible.
type bundleArtifact struct {
	manifest      Manifest
	config, layer []byte
}

func newBundleArtifact(b *packagesv1.PackageBundle) (*bundleArtifact, error) {
	text, err := bundle.Format(b)
	if err != nil {
		return nil, err
	}
	a := &bundleArtifact{config: []byte("{}"), layer: text}
	content, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: configType, Digest: hashOf(a.config), Size: int64(len(a.config))},
		Layers: []v1.Descriptor{{
			MediaType: types.OCIUncompressedLayer, Digest: hashOf(text), Size: int64(len(text)), Annotations: map[string]string{ocispec.AnnotationTitle: bundle.FileName},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of bundle %q: %w", b.Name, err)
	}
	a.manifest = newManifest(types.OCIManifestSchema1, content)
	return a, nil
}

// Fetched is a bundle and its manifest.
type Fetched struct {
	*packagesv1.PackageBundle

	// Ref contains the digest of the manifest.
	Ref      Ref
	manifest Manifest
}

// Fetch reads a bundle.
func Fetch(ctx context.Context, from Source, ref Ref) (*Fetched, error) {
	ref.Kind = KindBundle
	m, err := from.Manifest(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("pulling package bundle: fetch manifest: %w", err)
	}
	layer, err := bundle.Layer(m.Content)
	if err != nil {
		return nil, fmt.Errorf("pulling package bundle: %s: %w", ref, err)
	}
	body, err := from.Blob(ctx, ref, layer)
	if err != nil {
		return nil, fmt.Errorf("pulling package bundle: fetch blob: %w", err)
	}
	text, err := readAll(body, layer, bundle.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("pulling package bundle: fetch blob: %w", explain(err))
	}
	b, err := bundle.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	ref.Digest = m.Digest.String()
	return &Fetched{PackageBundle: b, Ref: ref, manifest: m}, nil
}
