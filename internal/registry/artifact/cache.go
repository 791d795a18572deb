package artifact

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/filelock"
)

// abandonedAfter is the age at which an incomplete file is deleted.
const abandonedAfter = time.Hour

// cache is a directory of files named by their digests. The modification time of a file is its last
// use, so that all processes that share the directory see it. Files are read at once, so a file may
// be deleted while it is read.
type cache struct {
	dir   string
	max   int64
	clock clock.PassiveClock
}

func (c *cache) open() error {
	if err := os.MkdirAll(c.files(), 0o700); err != nil {
		return err
	}
	return c.shrink()
}

func (c *cache) files() string { return filepath.Join(c.dir, "sha256") }

func (c *cache) path(digest string) string {
	return filepath.Join(c.files(), strings.TrimPrefix(digest, digestPrefix))
}

// get returns nil if the file doesn't exist, and an error if it is damaged.
func (c *cache) get(digest string) ([]byte, error) {
	path := c.path(digest)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case contentDigest(data) != digest:
		return nil, errors.Join(fmt.Errorf("%w: %q is damaged", ErrInvalid, path), os.Remove(path))
	}
	c.touch(path)
	return data, nil
}

// touch ignores errors: the file is then deleted earlier than others.
func (c *cache) touch(path string) {
	now := c.clock.Now()
	_ = os.Chtimes(path, now, now)
}

func (c *cache) put(digest string, data []byte) error {
	if int64(len(data)) > c.max {
		return nil
	}
	if err := atomicfile.Write(c.path(digest), data, 0o600); err != nil {
		return err
	}
	c.touch(c.path(digest))
	return c.shrink()
}

// shrink deletes the least recently used files until the rest fits. Only one process does it at a
// time; files of other processes are considered the next time.
func (c *cache) shrink() error {
	lock, err := filelock.Try(filepath.Join(c.dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	kept, err := c.list()
	if err != nil {
		return err
	}
	var total int64
	for _, file := range kept {
		total += file.Size()
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, file := range kept {
		if total <= c.max {
			break
		}
		if err := os.Remove(filepath.Join(c.files(), file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= file.Size()
	}
	return nil
}

// list returns the complete files, and deletes the leftovers of killed writers.
func (c *cache) list() ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(c.files())
	if err != nil {
		return nil, err
	}
	var complete []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil { // another process deleted it
			continue
		}
		if _, ok := parseDigest(entry.Name()); ok {
			complete = append(complete, info)
		} else if c.clock.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(filepath.Join(c.files(), entry.Name()))
		}
	}
	return complete, nil
}
