// Package artifacttest runs places to publish packages at, for tests: HTTP chart repositories and OCI registries, which speak TLS and ask
// for credentials if told to, count what they are asked, and fail on command. It also packs and signs packages, without any tool for it.
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

// Chart packs a chart. Names of files are relative to the chart, templates/a.yaml for one; Chart.yaml is written unless it is among them.
// The same input gives the same bytes.
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

// Archive packs files into a compressed tar. The same input gives the same bytes.
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
