package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/payload"
)

// EnvDir is the environment variable that replaces FindOptions.Dir.
const EnvDir = "DROVER_KUBE_DIR"

// probeTimeout bounds how long a binary may take to report its version. A cold start of such a
// large file from a slow disk takes seconds.
const probeTimeout = 30 * time.Second

// FindOptions select a version and where to search for it. The zero value accepts any release that
// Drover supports.
type FindOptions struct {
	// Dir, or else $DROVER_KUBE_DIR, is the only location to search if it is set.
	Dir string
	// Version is the wanted release, such as v1.36.3. Empty means the default, or else the newest
	// one found: a plane runs on every release that Drover ships. A user-specified directory must
	// have the default one.
	Version string
	// Executable is the file that may carry a payload: the running one if empty.
	Executable string
	// Cache is where binaries are kept: cache.Default if empty.
	Cache cache.Cache
}

// Find returns the Kubernetes binary of the wanted version. It searches the directory that the user
// named; without one, the running executable, whose payload is unpacked into the cache once; then
// the cache. Its errors are a *MissingError, a *VersionError, a *payload.CorruptError or one of the
// file system.
func Find(opts FindOptions) (Binary, error) {
	versions := []string{opts.Version}
	if opts.Version == "" {
		versions = version.Shipped()
	}
	opts, err := opts.complete()
	if err != nil {
		return Binary{}, err
	}
	if opts.Dir != "" {
		return findInDir(opts.Dir, versions[0])
	}
	for _, v := range versions {
		opts.Version = v
		if b, ok, err := opts.find(); ok || err != nil {
			return b, err
		}
	}
	return Binary{}, &MissingError{Version: versions[0], Looked: []string{
		opts.Executable + " (contains no Kubernetes " + versions[0] + ")",
		filepath.Join(opts.Cache.Dir, cache.Name(versions[0], "*")),
	}}
}

// find searches the executable and the cache for one release.
func (o FindOptions) find() (b Binary, ok bool, err error) {
	b, ok, err = findInExecutable(o)
	if ok || err != nil {
		return b, ok, err
	}
	for _, e := range o.Cache.List(o.Version) {
		if e.Touch() == nil {
			return Binary{Path: e.Binary(), Version: e.Version}, true, nil
		}
	}
	return Binary{}, false, nil
}

func (o FindOptions) complete() (FindOptions, error) {
	var err error
	if o.Dir == "" {
		o.Dir = os.Getenv(EnvDir)
	}
	if o.Dir != "" {
		return o, nil
	}
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return o, fmt.Errorf("finding the running executable: %w", err)
		}
	}
	if o.Cache.Dir == "" {
		o.Cache, err = cache.Default()
	}
	return o, err
}

// findInDir accepts a cache entry, a copy of one, or any directory with the bare binary.
func findInDir(dir, want string) (Binary, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binary{}, fmt.Errorf("resolving %q: %w", dir, err)
	}
	b := Binary{Path: filepath.Join(dir, "kube")}
	if _, err := os.Stat(b.Path); errors.Is(err, fs.ErrNotExist) {
		return Binary{}, &MissingError{Version: want, Looked: []string{b.Path}}
	} else if err != nil {
		return Binary{}, fmt.Errorf("finding a Kubernetes binary: %w", err)
	}
	if b.Version, err = versionOf(b); err != nil {
		return Binary{}, err
	}
	if b.Version != want {
		return Binary{}, &VersionError{Path: b.Path, Want: want, Got: b.Version}
	}
	return b, nil
}

func versionOf(b Binary) (string, error) {
	m, err := cache.ReadManifest(b.Path)
	if errors.Is(err, fs.ErrNotExist) {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		return b.Probe(ctx)
	}
	return m.Version, err
}

// findInExecutable uses the payload if it has the wanted version. Another version is not an error,
// as the cache may have the wanted one.
func findInExecutable(opts FindOptions) (Binary, bool, error) {
	p, err := payload.Open(opts.Executable)
	if errors.Is(err, payload.ErrNone) || (err == nil && p.Version != opts.Version) {
		return Binary{}, false, nil
	}
	if err != nil {
		return Binary{}, false, err
	}
	e, err := unpacked(opts.Cache, p)
	if err != nil {
		return Binary{}, false, err
	}
	return Binary{Path: e.Binary(), Version: e.Version}, true, nil
}
