package registry

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Media types that Helm uses for charts in a registry.
const (
	helmConfig = "application/vnd.cncf.helm.config.v1+json"
	helmChart  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// shipped marks charts that ship with Drover, which another version of Drover may replace.
const shipped = "dev.drover.shipped"

// artifact is a chart in the form that registries store. It is reproducible.
type artifact struct {
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

// artifact returns the chart as an artifact whose manifest is annotated with the marks.
func (c *Chart) artifact(marks ...string) (*artifact, error) {
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
		return nil, fmt.Errorf("encoding the manifest of chart %q: %w", c.Name, err)
	}
	return &artifact{tag: tagOf(c.Version), manifest: manifest, blobs: []blob{config, content}}, nil
}

func (a *artifact) digest() digest.Digest { return digest.FromBytes(a.manifest) }

// tagOf converts a version to a tag, which can't contain a plus.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// Content is the content of a chart in a registry.
type Content struct {
	// Tag is the chart's version with the characters that a tag allows.
	Tag      string
	Manifest []byte
	// Blobs are the blobs that the manifest refers to.
	Blobs [][]byte
}

// Content returns what Push writes to a registry, so that callers know the digest in advance.
func (c *Chart) Content() (Content, error) {
	a, err := c.artifact()
	if err != nil {
		return Content{}, err
	}
	content := Content{Tag: a.tag, Manifest: a.manifest}
	for _, b := range a.blobs {
		content.Blobs = append(content.Blobs, b.content)
	}
	return content, nil
}
