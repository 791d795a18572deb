package git

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// editor writes new versions of directories. What isn't changed stays as it is, including modes,
// links and submodules.
type editor struct {
	objects *memory.Storage
	// created lists the objects that the server doesn't have.
	created []plumbing.Hash
}

// apply returns the root directory after changes. It equals the given one if nothing changed.
func (e *editor) apply(root plumbing.Hash, changes []change) (plumbing.Hash, error) {
	changed, err := e.directory(root, changes)
	if err != nil || changed != plumbing.ZeroHash || root.IsZero() {
		return changed, err
	}
	return e.store(&object.Tree{}) // Without its last file a commit has an empty root.
}

// directory applies changes, whose paths are relative to the directory. It returns zero for a
// directory without entries, which doesn't exist in Git.
func (e *editor) directory(at plumbing.Hash, changes []change) (plumbing.Hash, error) {
	entries, err := e.entries(at)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	below := map[string][]change{}
	for _, c := range changes {
		if name, rest, nested := strings.Cut(c.path, "/"); nested {
			below[name] = append(below[name], change{rest, c.content})
		} else if err := e.file(entries, c); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if err := e.subdirectory(entries, name, below[name]); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	sorted := object.Tree{Entries: slices.Collect(maps.Values(entries))}
	sort.Sort(object.TreeEntrySorter(sorted.Entries))
	return e.store(&sorted)
}

func (e *editor) entries(at plumbing.Hash) (map[string]object.TreeEntry, error) {
	entries := map[string]object.TreeEntry{}
	if at.IsZero() {
		return entries, nil
	}
	directory, err := object.GetTree(e.objects, at)
	if err != nil {
		return nil, missing(err)
	}
	for _, entry := range directory.Entries {
		entries[entry.Name] = entry
	}
	return entries, nil
}

// file writes or removes a file. A file that exists keeps its mode.
func (e *editor) file(entries map[string]object.TreeEntry, c change) error {
	entry, exists := entries[c.path]
	if exists && !isFile(entry.Mode) {
		return fmt.Errorf("writing %q: it exists and is not a regular file", c.path)
	}
	if c.content == nil {
		delete(entries, c.path)
		return nil
	}
	if !exists {
		entry = object.TreeEntry{Name: c.path, Mode: filemode.Regular}
	}
	blob := &plumbing.MemoryObject{}
	blob.SetType(plumbing.BlobObject)
	_, _ = blob.Write(c.content)
	var err error
	entry.Hash, err = e.add(blob)
	entries[c.path] = entry
	return err
}

func isFile(mode filemode.FileMode) bool {
	return mode == filemode.Regular || mode == filemode.Executable || mode == filemode.Deprecated
}

func (e *editor) subdirectory(entries map[string]object.TreeEntry, name string, changes []change) error {
	entry, exists := entries[name]
	if exists && entry.Mode != filemode.Dir {
		return fmt.Errorf("writing below %q: it exists and is not a directory", name)
	}
	changed, err := e.directory(entry.Hash, changes)
	if err != nil {
		return fmt.Errorf("in %q: %w", name, err)
	}
	if changed.IsZero() {
		delete(entries, name)
		return nil
	}
	entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: changed}
	return nil
}

// encoder is a tree or a commit.
type encoder interface {
	Encode(to plumbing.EncodedObject) error
}

func (e *editor) store(o encoder) (plumbing.Hash, error) {
	encoded := &plumbing.MemoryObject{}
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return e.add(encoded)
}

// add stores an object unless the server has it: everything that was fetched is there.
func (e *editor) add(o plumbing.EncodedObject) (plumbing.Hash, error) {
	if e.objects.HasEncodedObject(o.Hash()) == nil {
		return o.Hash(), nil
	}
	e.created = append(e.created, o.Hash())
	return e.objects.SetEncodedObject(o)
}
