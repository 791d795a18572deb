package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

// Directory keeps archives as files that only their owner can read.
type Directory struct {
	Path string
	// Suffix is that of the files; that of snapshots if empty.
	Suffix string
}

// snapshotSuffix is that of files and objects with snapshots.
const snapshotSuffix = ".snapshot"

func (d Directory) suffix() string { return cmp.Or(d.Suffix, snapshotSuffix) }

func (d Directory) file(name string) string { return filepath.Join(d.Path, name+d.suffix()) }

// Put implements Storage.
func (d Directory) Put(_ context.Context, name string, fill func(io.Writer) error) (Entry, error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return Entry{}, err
	}
	path := d.file(name)
	if _, err := os.Lstat(path); err == nil {
		return Entry{}, fmt.Errorf("%w: %s", ErrExists, path)
	}
	if err := atomicfile.Stream(path, 0o600, fill); err != nil {
		return Entry{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: name, Size: info.Size(), Location: path}, nil
}

// List implements Storage.
func (d Directory) List(context.Context) ([]Entry, error) {
	files, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), d.suffix())
		if !ok || !namePattern.MatchString(name) {
			continue
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // Deleted since.
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Entry{Name: name, Size: info.Size(), Location: d.file(name)})
	}
	return out, nil
}

// Get implements Storage.
func (d Directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := os.Open(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, d.file(name))
	}
	return f, err
}

// Delete implements Storage.
func (d Directory) Delete(_ context.Context, name string) error {
	if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
