package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// tree implements fs.FS, fs.ReadDirFS and fs.ReadFileFS for the files of a commit.
type tree struct {
	objects storer.EncodedObjectStorer
	// root is zero for an empty repository.
	root plumbing.Hash
	// max is the size of the largest file that can be read.
	max     int64
	changed time.Time
}

// Open implements fs.FS.
func (t *tree) Open(name string) (fs.File, error) {
	node, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if node.IsDir() {
		entries, err := t.list(node)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openDir{node: node, entries: entries}, nil
	}
	data, err := t.read(node)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{node: node, Reader: bytes.NewReader(data)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (t *tree) ReadFile(name string) ([]byte, error) {
	node, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	data, err := t.read(node)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// ReadDir implements fs.ReadDirFS.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	node, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	entries, err := t.list(node)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return entries, nil
}

// find follows a path from the root.
func (t *tree) find(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := &node{name: ".", hash: t.root, mode: fs.ModeDir | 0o555, changed: t.changed}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		next, err := t.child(at, part)
		if err != nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: err}
		}
		at = next
	}
	return at, nil
}

func (t *tree) child(of *node, name string) (*node, error) {
	if !of.IsDir() {
		return nil, fs.ErrNotExist
	}
	entries, err := t.list(of)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Name() == name {
			return entry.(*node), nil
		}
	}
	return nil, fs.ErrNotExist
}

// list returns the entries of a directory, in the order of their names.
func (t *tree) list(of *node) ([]fs.DirEntry, error) {
	if !of.IsDir() {
		return nil, errors.New("not a directory")
	}
	if of.hash.IsZero() {
		return nil, nil
	}
	directory, err := object.GetTree(t.objects, of.hash)
	if err != nil {
		return nil, missing(err)
	}
	var entries []fs.DirEntry
	for _, entry := range directory.Entries {
		n, err := t.node(entry)
		if err != nil {
			return nil, err
		}
		if n != nil {
			entries = append(entries, n)
		}
	}
	sortByName(entries)
	return entries, nil
}

// node describes an entry, or returns nil for what has no place in the file system: links,
// submodules, and names that would lead elsewhere.
func (t *tree) node(entry object.TreeEntry) (*node, error) {
	n := &node{name: entry.Name, hash: entry.Hash, changed: t.changed}
	if entry.Name != path.Base(entry.Name) || !fs.ValidPath(entry.Name) {
		return nil, nil // a nil node is left out
	}
	switch entry.Mode {
	case filemode.Dir:
		n.mode = fs.ModeDir | 0o555
		return n, nil
	case filemode.Regular, filemode.Deprecated:
		n.mode = 0o444
	case filemode.Executable:
		n.mode = 0o555
	default:
		return nil, nil // a nil node is left out
	}
	file, err := t.objects.EncodedObject(plumbing.BlobObject, entry.Hash)
	if err != nil {
		return nil, missing(err)
	}
	n.size = file.Size()
	return n, nil
}

func (t *tree) read(n *node) ([]byte, error) {
	if n.IsDir() {
		return nil, errors.New("is a directory")
	}
	if n.size > t.max {
		return nil, &FileTooLargeError{Size: n.size, Limit: t.max}
	}
	file, err := t.objects.EncodedObject(plumbing.BlobObject, n.hash)
	if err != nil {
		return nil, missing(err)
	}
	r, err := file.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// FileTooLargeError means that a file exceeds Limits.File.
type FileTooLargeError struct{ Size, Limit int64 }

func (e *FileTooLargeError) Error() string {
	return fmt.Sprintf("file has %d bytes, which exceeds the limit of %d", e.Size, e.Limit)
}
