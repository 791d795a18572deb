// Package atomicfile writes files atomically: they contain either the old or the new content, even
// after a power failure. Start with Write.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write replaces the file at path with data. When it returns nil, content and name are on disk.
func Write(path string, data []byte, mode os.FileMode) error {
	return Stream(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Stream is Write for content that is not in memory. If fill fails, the file is unchanged.
func Stream(path string, mode os.FileMode, fill func(io.Writer) error) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := errors.Join(tmp.Chmod(mode), fill(tmp), tmp.Sync(), tmp.Close()); err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("writing %q: %w", path, err)
	}
	return SyncDir(dir)
}

// Sweep removes temporary files of killed writers of the file at path. There must be no concurrent
// writer.
func Sweep(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing the directory of %q: %w", path, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+filepath.Base(path)+".") {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
			return fmt.Errorf("removing a temporary file of %q: %w", path, err)
		}
	}
	return nil
}

// SyncDir makes the names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing directory %q: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
