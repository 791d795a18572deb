package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/drover-dev/drover/internal/kube/flux"
)

// program builds a small executable, in a directory of its own.
func program(t *testing.T, environment ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "manager")
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary, source)
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0", "GOOS=linux"}, environment...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func build(t *testing.T, c Contents) v1.Image {
	t.Helper()
	img, err := c.Image()
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func tag(t *testing.T, s string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(s)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func TestSameContentsGiveTheSameArchive(t *testing.T) {
	archive := func() []byte {
		var out bytes.Buffer
		img := build(t, Contents{Program: Manager(), Binary: program(t), Version: "v1.2.3", Revision: "abc"})
		if err := writeLayout(&out, tag(t, "myname/img-provider"), img); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if !bytes.Equal(archive(), archive()) {
		t.Error("two builds in two directories gave two archives")
	}
}

func TestDigestDependsOnTheContents(t *testing.T) {
	binary := program(t)
	digest := func(c Contents) v1.Hash {
		d, err := build(t, c).Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest(Contents{Program: Manager(), Binary: binary, Version: "v1"}) == digest(Contents{Program: Manager(), Binary: binary, Version: "v2"}) {
		t.Error("another version gave the same digest")
	}
}

func TestImageRunsTheManagerAsNonRoot(t *testing.T) {
	img := build(t, Contents{Program: Manager(), Binary: program(t), Version: "v1.2.3", Revision: "abc"})
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/manager"},
		User:       "65532:65532",
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Drover manager",
			"org.opencontainers.image.source":   "https://github.com/drover-dev/drover",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  "v1.2.3",
			"org.opencontainers.image.revision": "abc",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("unexpected config (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("the image is for %s/%s", config.OS, config.Architecture)
	}
	if !config.Created.Equal(time.Unix(0, 0)) {
		t.Errorf("the image was created %s, want the epoch", config.Created)
	}
}

func TestLayerHasOnlyTheBinary(t *testing.T) {
	binary := program(t)
	layers, err := build(t, Contents{Program: Manager(), Binary: binary}).Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v), want 1", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tr := tar.NewReader(r)
	header, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != "manager" || header.Mode != 0o755 || header.Uid != 0 || !header.ModTime.Equal(time.Unix(0, 0)) {
		t.Errorf("unexpected file: %+v", header)
	}
	got, _ := io.ReadAll(tr)
	want, _ := os.ReadFile(binary)
	if !bytes.Equal(got, want) {
		t.Error("the file is not the binary")
	}
	if _, err := tr.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more in the layer: %v", err)
	}
}

func TestArchiveIsReadAsDockerAndAsOCI(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	img := build(t, Contents{Program: Manager(), Binary: program(t)})
	ref := tag(t, "myname/img-provider")
	if err := WriteArchive(file, ref, img); err != nil {
		t.Fatal(err)
	}
	docker, err := tarball.ImageFromPath(file, &ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(docker); err != nil {
		t.Errorf("as docker reads it: %v", err)
	}
	oci := ociImage(t, file)
	if err := validate.Image(oci); err != nil {
		t.Errorf("as OCI tools read it: %v", err)
	}
	got, _ := oci.Digest()
	if want, _ := img.Digest(); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
}

// ociImage unpacks the archive and opens the only image of the layout.
func ociImage(t *testing.T, file string) v1.Image {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("unexpected index %+v (%v)", manifest, err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestShortName(t *testing.T) {
	for in, want := range map[string]string{
		"myname/img-provider":           "myname/img-provider:latest",
		"myname/img-provider:v1":        "myname/img-provider:v1",
		"registry.example.com:5000/a/b": "registry.example.com:5000/a/b:latest",
	} {
		if got := ShortName(tag(t, in)); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func TestUnsuitableBinaryIsRejected(t *testing.T) {
	text := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, binary, want string
	}{
		{"a missing file", filepath.Join(t.TempDir(), "manager"), "run make build first"},
		{"a script", text, "reading"},
		{"a binary for another system", program(t, "GOOS=darwin"), "build it with GOOS=linux"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Contents{Program: Manager(), Binary: tt.binary}.Image()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestImageOfAFluxControllerRunsIt(t *testing.T) {
	c := flux.Source()
	img := build(t, Contents{Program: Flux(c), Binary: program(t), Version: c.Version})
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/source-controller"}, file.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	for label, want := range map[string]string{"title": "Flux source-controller", "source": "https://github.com/fluxcd/source-controller", "version": c.Version} {
		if got := file.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}
