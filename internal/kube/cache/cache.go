// Package cache keeps binaries of Kubernetes and Flux on disk, one directory per content, shared by
// every checkout and every Drover of a user:
//
//	<user cache>/drover/kube/
//	  v1.36.3-3f2a…/        a complete entry
//	    kube                the multi-call binary
//	    kube-apiserver …    symbolic links to it, one per program
//	    kube.json           the Manifest, written last
//	    kube.zst            the compressed binary, created on demand
//	  .lock-v1.36.3-3f2a…   held while the entry is created
//	  .tmp-v1.36.3-3f2a….N  an incomplete entry; remains only after a crash
//	<user cache>/drover/source-controller/
//	  v1.9.6-8c1d…/         the same with another name of the binary
//
// Creating an entry removes other entries of its version that no process runs and that were not
// used recently. The package never builds, downloads or runs anything; that is up to the function
// passed to [Cache.Create]. Start at [Default] and [Cache.Create].
package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	lockPrefix = ".lock-"
	tempPrefix = ".tmp-"
)

// Cache is a directory of entries. It need not exist yet.
type Cache struct {
	Dir string
	// Binary is the file name of the binary in each entry; empty means "kube".
	Binary string
}

// Default is the cache of the current user for Kubernetes.
func Default() (Cache, error) { return For(defaultBinary) }

// For is the cache of the current user for a binary.
func For(binary string) (Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("finding the user's cache directory: %w; set XDG_CACHE_HOME to an absolute path", err)
	}
	return Cache{Dir: filepath.Join(dir, "drover", binary), Binary: binary}, nil
}

func (c Cache) open(dir string) (Entry, bool) { return open(dir, cmp.Or(c.Binary, defaultBinary)) }

// Name is the name of the entry for one content of one version.
func Name(version, key string) string {
	return version + "-" + key
}

// Get returns the entry of that name if it is complete.
func (c Cache) Get(name string) (Entry, bool) {
	return c.open(filepath.Join(c.Dir, name))
}

// List returns the complete entries of a version for this platform, the most recently used first.
func (c Cache) List(version string) []Entry {
	dirs, _ := filepath.Glob(filepath.Join(c.Dir, version+"-*"))
	var entries []Entry
	for _, dir := range dirs {
		if e, ok := c.open(dir); ok && e.Version == version && e.runsHere() {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(b.used.Compare(a.used), strings.Compare(a.Dir, b.Dir))
	})
	return entries
}

// Request describes an entry to create.
type Request struct {
	Name string
	// Fill puts the binary into the directory and describes it. Size and sha256 of the manifest are
	// computed afterwards.
	Fill func(ctx context.Context, dir string) (Manifest, error)
	// Waiting is called once if another process is creating the same entry.
	Waiting func()
}

// Create returns the entry, creating it if necessary. When several processes ask for the same
// entry, one creates it and the others wait.
func (c Cache) Create(ctx context.Context, r Request) (Entry, error) {
	if e, ok := c.Get(r.Name); ok && e.Touch() == nil {
		return e, nil
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return Entry{}, fmt.Errorf("creating the cache: %w", err)
	}
	unlock, err := lock(ctx, c.lockFile(r.Name), r.Waiting)
	if err != nil {
		return Entry{}, fmt.Errorf("locking cache entry %q: %w", r.Name, err)
	}
	defer unlock()
	if e, ok := c.Get(r.Name); ok {
		return e, e.Touch()
	}
	if err := c.removeLeftovers(r.Name); err != nil {
		return Entry{}, err
	}
	e, err := c.make(ctx, r)
	if err == nil {
		c.prune(e.Version)
	}
	return e, err
}

// make fills a temporary directory and moves it into place. The caller holds
// the lock of the entry.
func (c Cache) make(ctx context.Context, r Request) (Entry, error) {
	temp, err := os.MkdirTemp(c.Dir, tempPrefix+r.Name+".")
	if err != nil {
		return Entry{}, fmt.Errorf("creating the cache entry %q: %w", r.Name, err)
	}
	defer os.RemoveAll(temp) // A no-op once it has been renamed.
	manifest, err := r.Fill(ctx, temp)
	if err != nil {
		return Entry{}, err
	}
	if err := seal(filepath.Join(temp, cmp.Or(c.Binary, defaultBinary)), manifest); err != nil {
		return Entry{}, fmt.Errorf("completing cache entry %q: %w", r.Name, err)
	}
	final := filepath.Join(c.Dir, r.Name)
	// Create has checked that this is not a complete entry.
	if err := os.RemoveAll(final); err != nil {
		return Entry{}, fmt.Errorf("replacing damaged cache entry %q: %w", r.Name, err)
	}
	if err := os.Rename(temp, final); err != nil {
		return Entry{}, fmt.Errorf("publishing cache entry %q: %w", r.Name, err)
	}
	e, ok := c.open(final)
	if !ok {
		return Entry{}, fmt.Errorf("cache entry %q is not readable right after it was created", final)
	}
	return e, nil
}

// removeLeftovers removes the temporary directories of crashed processes. The caller holds the lock
// of the entry held.
func (c Cache) removeLeftovers(held string) error {
	temps, _ := filepath.Glob(filepath.Join(c.Dir, tempPrefix+"*"))
	for _, temp := range temps {
		name := strings.TrimPrefix(filepath.Base(temp), tempPrefix)
		name = name[:max(strings.LastIndexByte(name, '.'), 0)]
		if err := c.removeLeftover(temp, name, held); err != nil {
			return fmt.Errorf("removing files of an interrupted run: %w", err)
		}
	}
	return nil
}

func (c Cache) removeLeftover(temp, name, held string) error {
	if name != held {
		unlock, err := tryLock(c.lockFile(name))
		if errors.Is(err, errLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		defer unlock()
	}
	return os.RemoveAll(temp)
}

func (c Cache) lockFile(name string) string {
	return filepath.Join(c.Dir, lockPrefix+name)
}

// Touch marks the entry as most recently used. A read-only cache is not an error.
func (e Entry) Touch() error {
	now := time.Now()
	err := os.Chtimes(manifestFile(e.Binary()), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cache entry %q was removed while it was being used: %w", e.Dir, err)
	}
	return nil
}
