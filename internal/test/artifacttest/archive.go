// Package artifacttest runs package sources for tests: HTTP chart repositories and OCI registries,
// optionally with TLS and credentials, that count requests and fail on demand. It also packs and
// signs packages without external tools.
//
// Start with NewRepository or NewRegistry, and Chart.
package artifacttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"
)

// Chart packs a chart. File names are relative to the chart, such as templates/a.yaml; Chart.yaml
// is generated unless given. The result is reproducible.
func Chart(t testing.TB, name, version string, files map[string]string) []byte {
	t.Helper()
	base := path.Base(name)
	inside := map[string]string{base + "/Chart.yaml": chartYAML(base, version)}
	for file, content := range files {
		inside[path.Join(base, file)] = content
	}
	return Archive(t, inside)
}

func chartYAML(name, version string) string {
	return fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %q\n", name, version)
}

// Archive packs files into a compressed tar. The result is reproducible.
func Archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := archive.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, archive.Close())
	must(t, compressed.Close())
	return packed.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
