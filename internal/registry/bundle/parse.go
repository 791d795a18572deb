package bundle

import (
	"bytes"
	"errors"
	"fmt"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// MaxSize is the largest size of a bundle. A cluster doesn't store larger objects.
const MaxSize = 4 << 20

// Parse reads a bundle from YAML or JSON.
func Parse(text []byte) (*packagesv1.PackageBundle, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("package bundle artifact is empty")
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("unmarshalling package bundle: larger than %d MiB", MaxSize>>20)
	}
	b := &packagesv1.PackageBundle{}
	if err := safeyaml.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("unmarshalling package bundle: %w", err)
	}
	if b.Kind != kind || b.APIVersion != packagesv1.GroupVersion.String() {
		return nil, fmt.Errorf("unmarshalling package bundle: got kind %q of %q, want %s of %s", b.Kind, b.APIVersion, kind, packagesv1.GroupVersion)
	}
	return b, nil
}

// Format encodes a bundle as YAML without the fields that a server adds.
func Format(b *packagesv1.PackageBundle) ([]byte, error) {
	content, err := plain(b)
	if err != nil {
		return nil, err
	}
	drop(content, neverSigned[:len(neverSigned)-1]) // all but minControllerVersion
	drop(content, storageMetadata)
	return unfolded(content)
}
