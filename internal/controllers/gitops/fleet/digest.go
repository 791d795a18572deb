package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
)

// kustomizationNames are the names under which Flux finds a kustomization.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// errOutside means that a directory refers to files outside of it.
var errOutside = errors.New("it refers to files outside of the directory")

// digestOf returns a digest of the files that a directory is built from: its own, or all files of
// the repository if a kustomization may refer to others.
func digestOf(fsys fs.FS, dir string) (string, error) {
	sum := sha256.New()
	err := addFiles(sum, fsys, dir)
	if errors.Is(err, errOutside) {
		sum.Reset()
		err = addAll(sum, fsys)
	}
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", dir, err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// addFiles adds the files below a directory, in their order, until one refers to others.
func addFiles(sum hash.Hash, fsys fs.FS, dir string) error {
	return walk(fsys, dir, func(name string, entry fs.DirEntry, data []byte) error {
		if slices.Contains(kustomizationNames, entry.Name()) && bytes.Contains(data, []byte("..")) {
			return errOutside
		}
		return addFile(sum, name[len(dir):], entry, data)
	})
}

func addAll(sum hash.Hash, fsys fs.FS) error {
	return walk(fsys, ".", func(name string, entry fs.DirEntry, data []byte) error { return addFile(sum, name, entry, data) })
}

// addFile adds a file so that no two sets of files have the same input.
func addFile(sum io.Writer, name string, entry fs.DirEntry, data []byte) error {
	_, err := fmt.Fprintf(sum, "%q %s %d\n%s\n", name, entry.Type(), len(data), data)
	return err
}

func walk(fsys fs.FS, dir string, visit func(name string, entry fs.DirEntry, data []byte) error) error {
	return fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return visit(name, entry, data)
	})
}
