package bundle

import (
	"bytes"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// MaxSize is how large a bundle may be. A cluster would not keep a larger one.
const MaxSize = 4 << 20

// Parse reads a bundle from YAML or JSON.
func Parse(text []byte) (*packagesv1.PackageBundle, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("package bundle artifact is empty")
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("unmarshalling package bundle: it has more than %d MiB", MaxSize>>20)
	}
	b := &packagesv1.PackageBundle{}
	if err := yaml.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("unmarshalling package bundle: %w", err)
	}
	if b.Kind != kind || b.APIVersion != packagesv1.GroupVersion.String() {
		return nil, fmt.Errorf("unmarshalling package bundle: it is a %q of %q, not a %s of %s", b.Kind, b.APIVersion, kind, packagesv1.GroupVersion)
	}
	return b, nil
}

// Format writes a bundle as a file: without what a server adds.
func Format(b *packagesv1.PackageBundle) ([]byte, error) {
	content, err := plain(b)
	if err != nil {
		return nil, err
	}
	drop(content, neverSigned[:len(neverSigned)-1]) // The last is not the server's.
	drop(content, keeping)
	return encode(content)
}
