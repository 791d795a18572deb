package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Limits of the files below a path. Repositories of thousands of clusters are smaller.
const (
	maxFiles = 50_000
	maxBytes = 256 << 20
)

// tree has the regular files below a directory, by path.
type tree struct {
	root  string
	files map[string][]byte
	names []string // of the files, sorted
	// other are symbolic links and special files, which are ignored.
	other []string
}

// load reads the files below a directory, which may be missing. It skips .git.
func load(fsys fs.FS, dir string) (*tree, error) {
	root, err := cleanPath(dir)
	if err != nil {
		return nil, err
	}
	t := &tree{root: root, files: map[string][]byte{}}
	left := int64(maxBytes)
	err = fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == root:
			return fs.SkipAll
		case err != nil:
			return err
		case entry.IsDir():
			return skipGit(entry)
		case !entry.Type().IsRegular():
			t.other = append(t.other, name)
			return nil
		}
		data, err := readLimited(fsys, name, left)
		left -= int64(len(data))
		t.files[name] = data
		if len(t.files) > maxFiles {
			err = fmt.Errorf("it has more than %d files", maxFiles)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", root, err)
	}
	t.names = slices.Sorted(maps.Keys(t.files))
	return t, nil
}

// skipGit skips the directory in which Git keeps its objects.
func skipGit(dir fs.DirEntry) error {
	if dir.Name() == ".git" {
		return fs.SkipDir
	}
	return nil
}

func readLimited(fsys fs.FS, name string, limit int64) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("the files have more than %d MiB", maxBytes>>20)
	}
	return data, err
}

// below returns the files below a directory, which are adjacent because they are sorted.
func (t *tree) below(dir string) []string {
	if dir == "." {
		return t.names
	}
	from, _ := slices.BinarySearch(t.names, dir+"/")
	to, _ := slices.BinarySearch(t.names, dir+string('/'+1))
	return t.names[from:to]
}

// manifests returns the YAML files directly in a directory, without its kustomization.
func (t *tree) manifests(dir string) []string {
	return filter(t.below(dir), func(name string) bool { return path.Dir(name) == dir && isManifest(name) })
}

// filter returns the names for which a function returns true.
func filter(names []string, keep func(name string) bool) []string {
	var all []string
	for _, name := range names {
		if keep(name) {
			all = append(all, name)
		}
	}
	return all
}

// isManifest reports whether Flux applies a file.
func isManifest(name string) bool {
	extension := path.Ext(name)
	return (extension == ".yaml" || extension == ".yml") && !slices.Contains(kustomizationNames(), path.Base(name))
}

// within reports whether a file or directory is below a directory.
func within(name, dir string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// apply returns the tree with changes.
func (t *tree) apply(changes Changes) *tree {
	after := &tree{root: t.root, files: maps.Clone(t.files)}
	for name, data := range changes {
		if data == nil {
			delete(after.files, name)
			continue
		}
		after.files[name] = data
	}
	after.names = slices.Sorted(maps.Keys(after.files))
	return after
}

// set records a change, unless the file has this content.
func (t *tree) set(changes Changes, name string, data []byte) {
	if before, exists := t.files[name]; exists && bytes.Equal(before, data) {
		delete(changes, name)
		return
	}
	changes[name] = data
}
