package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// threads limits the number of open files.
const threads = 64

// store accesses the content of a registry directly. It caches nothing, so that it can share the
// directory with distribution's handler.
type store struct {
	driver    driver.StorageDriver
	namespace distribution.Namespace
	vacuum    storage.Vacuum
}

func openStore(ctx context.Context, dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files := filesystem.New(filesystem.DriverParameters{RootDirectory: dir, MaxThreads: threads})
	namespace, err := storage.NewRegistry(ctx, files, storage.EnableDelete)
	if err != nil {
		return nil, err
	}
	return &store{driver: files, namespace: namespace, vacuum: storage.NewVacuum(ctx, files)}, nil
}

func (s *store) repository(ctx context.Context, name string) (distribution.Repository, error) {
	named, err := reference.WithName(name)
	if err != nil {
		return nil, fmt.Errorf("invalid repository name %q: %w", name, err)
	}
	return s.namespace.Repository(ctx, named)
}

// remove deletes content, even if manifests refer to it.
func (s *store) remove(d digest.Digest) error {
	if err := s.vacuum.RemoveBlob(d.String()); err != nil && !isMissing(err) {
		return fmt.Errorf("deleting %s: %w", d, err)
	}
	return nil
}

// Directories of distribution's layout on disk.
const (
	repositoriesDir = "/docker/registry/v2/repositories"
	contentDir      = "/docker/registry/v2/blobs"
)

func contentFile(d digest.Digest) string {
	return path.Join(contentDir, d.Algorithm().String(), d.Encoded()[:2], d.Encoded(), "data")
}

func isMissing(err error) bool {
	var missing driver.PathNotFoundError
	return errors.As(err, &missing)
}
