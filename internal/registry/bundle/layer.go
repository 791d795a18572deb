package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FileName is the title of the layer that contains a bundle.
const FileName = "bundle.yaml"

// errNoLayer has the text that existing scripts match.
var errNoLayer = errors.New("missing layer")

// Layer finds the bundle in a manifest: the layer with its title or with a YAML media type, or else
// the first layer. Tools that push bundles as files use the media type of a tar archive. An index
// has no layers.
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
