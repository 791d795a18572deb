package git

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// node is a file or directory of a commit. It implements fs.DirEntry and fs.FileInfo.
type node struct {
	name    string
	hash    plumbing.Hash
	mode    fs.FileMode
	size    int64
	changed time.Time
}

func (n *node) Name() string               { return n.name }
func (n *node) IsDir() bool                { return n.mode.IsDir() }
func (n *node) Type() fs.FileMode          { return n.mode.Type() }
func (n *node) Info() (fs.FileInfo, error) { return n, nil }
func (n *node) Size() int64                { return n.size }
func (n *node) Mode() fs.FileMode          { return n.mode }
func (n *node) ModTime() time.Time         { return n.changed }
func (n *node) Sys() any                   { return nil }
func (n *node) String() string             { return fs.FormatDirEntry(n) }

func sortByName(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
}

// openFile implements fs.File. Its embedded reader can seek.
type openFile struct {
	*bytes.Reader

	node *node
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }

// openDir implements fs.ReadDirFile.
type openDir struct {
	node    *node
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.node, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.node.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	next := d.entries[:n:n]
	d.entries = d.entries[n:]
	return next, nil
}
