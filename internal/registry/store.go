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

// threads bounds how many files are open at a time.
const threads = 64

// store is what a registry keeps, without the way over HTTP. Nothing of it is kept in memory, so that it and distribution's handler can
// work on the same directory.
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
		return nil, fmt.Errorf("%q is not a name for a repository: %w", name, err)
	}
	return s.namespace.Repository(ctx, named)
}

// remove removes content, whoever refers to it.
func (s *store) remove(d digest.Digest) error {
	if err := s.vacuum.RemoveBlob(d.String()); err != nil && !isMissing(err) {
		return fmt.Errorf("removing %s: %w", d, err)
	}
	return nil
}

// Where distribution keeps things.
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
