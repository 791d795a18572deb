// Package image packs a program into an OCI image without a container engine. The image is
// reproducible: its digest depends on the program, the version and the commit, not on when or where
// it is built. Start with Contents.
package image

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/kube/payload"
)

// nonRoot is the user id that distroless images made customary. It needs no passwd entry, and a
// number lets the kubelet verify runAsNonRoot.
const nonRoot = "65532:65532"

// Program describes what an image runs.
type Program struct {
	// Name is the name of the file in the image.
	Name string
	// Title and Source are shown to people: a name, and the address of the source code.
	Title, Source string
}

// Manager is Drover's manager.
func Manager() Program {
	return Program{Name: "manager", Title: "Drover manager", Source: "https://github.com/drover-dev/drover"}
}

// Flux is a controller of Flux.
func Flux(c flux.Controller) Program {
	return Program{Name: c.Name, Title: "Flux " + c.Name, Source: "https://" + c.Module}
}

// Contents is what an image contains, and all that its digest depends on.
type Contents struct {
	Program
	// Binary is a static executable. An embedded Kubernetes is left out.
	Binary   string
	Version  string
	Revision string
	// Compression is gzip by default: some engines support nothing else.
	Compression compression.Compression
}

// Image builds the image: one layer with one static binary, and no CA certificates. Programs
// connect to API servers whose CAs are in kubeconfigs; to use a registry or a Git server with a
// public certificate, mount a CA bundle and set SSL_CERT_FILE.
func (c Contents) Image() (v1.Image, error) {
	platform, err := platformOf(c.Binary)
	if err != nil {
		return nil, err
	}
	layer, err := c.layer()
	if err != nil {
		return nil, fmt.Errorf("packing %q: %w", c.Binary, err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "drover", Created: epoch()}})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = epoch()
	config.Config = c.config()
	return mutate.ConfigFile(img, config)
}

func (c Contents) config() v1.Config {
	return v1.Config{
		Entrypoint: []string{"/" + c.Name},
		User:       nonRoot,
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    c.Title,
			"org.opencontainers.image.source":   c.Source,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  c.Version,
			"org.opencontainers.image.revision": c.Revision,
		},
	}
}

// epoch is the time of everything in an image, so that the same binary gives the same digest.
func epoch() v1.Time { return v1.Time{Time: time.Unix(0, 0).UTC()} }

// platformOf reads the platform of a Go binary, and rejects one that needs a C library.
func platformOf(binary string) (v1.Platform, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("reading %q: %w: run make build first", binary, err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["CGO_ENABLED"] != "0" {
		return v1.Platform{}, fmt.Errorf("%q is not static: build it with CGO_ENABLED=0", binary)
	}
	p := v1.Platform{OS: settings["GOOS"], Architecture: settings["GOARCH"]}
	if p.OS != "linux" {
		return v1.Platform{}, fmt.Errorf("%q is for %s, but an image needs linux: build it with GOOS=linux", binary, p)
	}
	return p, nil
}

func (c Contents) layer() (v1.Layer, error) {
	data, err := readBare(c.Binary)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: c.Name, Mode: 0o755, Size: int64(len(data)), ModTime: epoch().Time, Format: tar.FormatUSTAR,
	}
	if err := tw.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := tw.Write(data); err != nil {
		return nil, err
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	kind, mediaType := compression.GZip, types.OCILayer
	if c.Compression == compression.ZStd {
		kind, mediaType = compression.ZStd, types.OCILayerZStd
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(mediaType), tarball.WithCompression(kind), tarball.WithCompressedCaching)
}

// readBare reads a program without the payload of a released Drover.
func readBare(binary string) ([]byte, error) {
	r, err := payload.Bare(binary)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
