package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// defaultBinary is the file name of the multi-call Kubernetes binary.
const defaultBinary = "kube"

// Files beside a binary are named after it.
func manifestFile(binary string) string   { return binary + ".json" }
func compressedFile(binary string) string { return binary + ".zst" }

// Manifest describes the binary beside it.
type Manifest struct {
	Version string `json:"version"`
	Key     string `json:"key"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	// Go is the toolchain that built the binary, Platform what it was built for.
	Go       string `json:"go,omitempty"`
	Platform string `json:"platform,omitempty"`
}

// Entry is a complete entry of the cache.
type Entry struct {
	Manifest
	Dir    string
	binary string
	used   time.Time
}

// Binary is the path of the binary.
func (e Entry) Binary() string { return filepath.Join(e.Dir, e.binary) }

// runsHere reports whether the binary is for this platform: machines of different platforms may
// share a home directory.
func (e Entry) runsHere() bool {
	return e.Platform == "" || e.Platform == runtime.GOOS+"/"+runtime.GOARCH
}

// Compressed returns the path of the compressed binary, which the first caller creates with
// compress.
func (e Entry) Compressed(ctx context.Context, compress func(dst io.Writer, src io.Reader) error) (string, error) {
	path := compressedFile(e.Binary())
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	unlock, err := lock(ctx, filepath.Join(e.Dir, ".lock-"+filepath.Base(path)), nil)
	if err != nil {
		return "", fmt.Errorf("locking cache entry %q: %w", e.Dir, err)
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := compressTo(path, e.Binary(), compress); err != nil {
		return "", fmt.Errorf("compressing %q: %w", e.Binary(), err)
	}
	return path, nil
}

func compressTo(path, binary string, compress func(dst io.Writer, src io.Reader) error) error {
	src, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer src.Close()
	temp := path + ".tmp"
	dst, err := os.Create(temp)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := compress(dst, src); err != nil {
		dst.Close()
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// ReadManifest reads the manifest of a binary in a directory laid out like an entry.
func ReadManifest(binary string) (Manifest, error) {
	var m Manifest
	data, err := os.ReadFile(manifestFile(binary))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("parsing %q: %w", manifestFile(binary), err)
	}
	return m, nil
}

// open returns the entry in dir if it is complete. Comparing the size detects a file that a full
// disk or a power failure has truncated.
func open(dir, name string) (Entry, bool) {
	path := filepath.Join(dir, name)
	m, err := ReadManifest(path)
	if err != nil {
		return Entry{}, false
	}
	binary, err := os.Stat(path)
	if err != nil || !binary.Mode().IsRegular() || binary.Size() != m.Size {
		return Entry{}, false
	}
	manifest, err := os.Stat(manifestFile(path))
	if err != nil {
		return Entry{}, false
	}
	return Entry{Manifest: m, Dir: dir, binary: name, used: manifest.ModTime()}, true
}

// seal makes the binary executable and durable and writes the manifest.
func seal(path string, m Manifest) error {
	binary, err := os.Open(path)
	if err != nil {
		return err
	}
	defer binary.Close()
	sum := sha256.New()
	if m.Size, err = io.Copy(sum, binary); err != nil {
		return err
	}
	m.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := binary.Chmod(0o755); err != nil {
		return err
	}
	if err := binary.Sync(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(manifestFile(path), append(data, '\n'), 0o600)
}
