package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxSize is how large the page may be, compressed.
const maxSize = 250_000

func TestPageIsSmallAndComplete(t *testing.T) {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	for _, name := range []string{"index.html", "main.js", "style.css", "icon.svg"} {
		file, found := File(name)
		if !found || len(file.Data) == 0 || file.Type == "" || file.Tag == "" {
			t.Errorf("%s: %v, type %q, tag %s", name, found, file.Type, file.Tag)
		}
		if _, err := w.Write(file.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || compressed.Len() > maxSize {
		t.Errorf("the page has %d bytes, want at most %d: %v", compressed.Len(), maxSize, err)
	}
}

func TestFilesOutsideThePageAreNotServed(t *testing.T) {
	for _, name := range []string{"web.go", "../web.go", "src/main.tsx", "", "dist", "../../etc/passwd"} {
		if _, found := File(name); found {
			t.Errorf("%q is served", name)
		}
	}
}

func TestPageLoadsNothingFromOtherHosts(t *testing.T) {
	for _, name := range []string{"index.html", "main.js", "style.css"} {
		file, _ := File(name)
		for _, part := range []string{"//fonts.", "https://cdn", "https://unpkg", "@import", "eval("} {
			if bytes.Contains(file.Data, []byte(part)) {
				t.Errorf("%s contains %q", name, part)
			}
		}
	}
}

func TestLibrariesAreUnchanged(t *testing.T) {
	sums, err := os.ReadFile("third_party/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[name] = sum
	}
	err = filepath.WalkDir("third_party", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "third_party/")
		if err != nil || d.IsDir() || name == "SHA256SUMS" || name == "README.md" || strings.HasSuffix(name, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		if sum := sha256.Sum256(data); want[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s differs from its checksum", name)
		}
		delete(want, name)
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("missing files: %v, %v", want, err)
	}
}
