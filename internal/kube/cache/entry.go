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

const (
	binaryFile     = "kube"
	manifestFile   = "kube.json"
	compressedFile = "kube.zst"
)

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
	Dir  string
	used time.Time
}

// Binary is the path of the multi-call binary.
func (e Entry) Binary() string { return filepath.Join(e.Dir, binaryFile) }

// runsHere reports whether the binary is for this platform: machines of different platforms may
// share a home directory.
func (e Entry) runsHere() bool {
	return e.Platform == "" || e.Platform == runtime.GOOS+"/"+runtime.GOARCH
}

// Compressed returns the path of the compressed binary, which the first caller creates with
// compress.
func (e Entry) Compressed(ctx context.Context, compress func(dst io.Writer, src io.Reader) error) (string, error) {
	path := filepath.Join(e.Dir, compressedFile)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	unlock, err := lock(ctx, filepath.Join(e.Dir, ".lock-"+compressedFile), nil)
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

// ReadManifest reads the manifest in a directory laid out like an entry.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("parsing %q: %w", filepath.Join(dir, manifestFile), err)
	}
	return m, nil
}

// open returns the entry in dir if it is complete. Comparing the size detects a file that a full
// disk or a power failure has truncated.
func open(dir string) (Entry, bool) {
	m, err := ReadManifest(dir)
	if err != nil {
		return Entry{}, false
	}
	binary, err := os.Stat(filepath.Join(dir, binaryFile))
	if err != nil || !binary.Mode().IsRegular() || binary.Size() != m.Size {
		return Entry{}, false
	}
	manifest, err := os.Stat(filepath.Join(dir, manifestFile))
	if err != nil {
		return Entry{}, false
	}
	return Entry{Manifest: m, Dir: dir, used: manifest.ModTime()}, true
}

// seal makes the binary executable and durable and writes the manifest.
func seal(dir string, m Manifest) error {
	binary, err := os.Open(filepath.Join(dir, binaryFile))
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
	return os.WriteFile(filepath.Join(dir, manifestFile), append(data, '\n'), 0o600)
}
