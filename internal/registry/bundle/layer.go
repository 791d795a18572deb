package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FileName is what a bundle is called in its artefact.
const FileName = "bundle.yaml"

// errNoLayer is what people's scripts look for.
var errNoLayer = errors.New("missing layer")

// Layer finds the bundle in the manifest of an artefact: the layer that has its name, or that says that it is YAML, or else the first. Tools
// that push bundles as files call it a tar, which it is not. An index has none.
func Layer(manifest []byte) (v1.Descriptor, error) {
	parsed, err := v1.ParseManifest(bytes.NewReader(manifest))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("unmarshal manifest: %w", err)
	}
	for _, layer := range parsed.Layers {
		if layer.Annotations[ocispec.AnnotationTitle] == FileName || strings.Contains(strings.ToLower(string(layer.MediaType)), "yaml") {
			return layer, nil
		}
	}
	if len(parsed.Layers) == 0 {
		return v1.Descriptor{}, errNoLayer
	}
	return parsed.Layers[0], nil
}
