package registry

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// What Helm calls the parts of a chart in a registry.
const (
	helmConfig = "application/vnd.cncf.helm.config.v1+json"
	helmChart  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// shipped marks charts that came with Drover, and that another Drover may replace.
const shipped = "dev.drover.shipped"

// artefact is a chart as it is in a registry. The same chart always gives the same one.
type artefact struct {
	tag      string
	manifest []byte
	blobs    []blob
}

type blob struct {
	mediaType string
	content   []byte
}

func (b blob) descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: b.mediaType, Digest: digest.FromBytes(b.content), Size: int64(len(b.content))}
}

// artefact gives the chart's manifest some marks.
func (c *Chart) artefact(marks ...string) (*artefact, error) {
	config, content := blob{helmConfig, c.metadata}, blob{helmChart, c.archive}
	annotations := map[string]string{v1.AnnotationTitle: c.Name, v1.AnnotationVersion: c.Version}
	for _, mark := range marks {
		annotations[mark] = "true"
	}
	manifest, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config.descriptor(), Layers: []v1.Descriptor{content.descriptor()}, Annotations: annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("describing chart %q: %w", c.Name, err)
	}
	return &artefact{tag: tagOf(c.Version), manifest: manifest, blobs: []blob{config, content}}, nil
}

func (a *artefact) digest() digest.Digest { return digest.FromBytes(a.manifest) }

// tagOf is a version as a tag, which can't have a plus.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// Content is a chart as Push puts it into a registry.
type Content struct {
	// Tag is the chart's version, as far as a tag can be one.
	Tag      string
	Manifest []byte
	// Blobs are what the manifest refers to by digest.
	Blobs [][]byte
}

// Content tells what a push will put into a registry, so that it can be known before.
func (c *Chart) Content() (Content, error) {
	a, err := c.artefact()
	if err != nil {
		return Content{}, err
	}
	content := Content{Tag: a.tag, Manifest: a.manifest}
	for _, b := range a.blobs {
		content.Blobs = append(content.Blobs, b.content)
	}
	return content, nil
}
