package artifact

import (
	"bytes"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of layers that are packages, or about them.
const (
	helmChart      types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	helmOldChart   types.MediaType = "application/tar+gzip"
	helmProvenance types.MediaType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	fluxContent    types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// manifest contains the layers of a manifest that are used.
type manifest struct {
	// digest is the digest of the manifest, which is signed.
	digest  string
	archive v1.Descriptor
	// provenance is the digest of the provenance file, if there is one.
	provenance string
}

func parseManifest(digest string, text []byte) (*manifest, error) {
	parsed, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: parsing the manifest: %w", ErrInvalid, err)
	}
	m := &manifest{digest: digest}
	var charts, archives []v1.Descriptor
	for _, layer := range parsed.Layers {
		switch layer.MediaType {
		case helmChart:
			charts = append(charts, layer)
		case helmProvenance:
			m.provenance = layer.Digest.String()
		case fluxContent, helmOldChart, types.OCILayer:
			archives = append(archives, layer)
		}
	}
	switch {
	case len(charts) == 1:
		m.archive = charts[0]
	case len(charts) == 0 && len(archives) == 1:
		m.archive = archives[0]
	default:
		return nil, fmt.Errorf("%w: %d of the %d layers of the manifest are charts and %d are archives, want one",
			ErrInvalid, len(charts), len(parsed.Layers), len(archives))
	}
	if _, ok := parseDigest(m.archive.Digest.String()); !ok {
		return nil, fmt.Errorf("%w: the digest of the archive is not a sha256", ErrInvalid)
	}
	m.archive = v1.Descriptor{MediaType: m.archive.MediaType, Digest: m.archive.Digest, Size: m.archive.Size}
	return m, nil
}
