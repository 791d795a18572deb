// Package storage keeps archives of snapshots and backups: in a directory, a registry, a bucket, or
// the metal service. An archive appears whole or not at all. The package doesn't know what archives
// contain. Start with Open.
package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Entry is a kept archive.
type Entry struct {
	// Name is the time of the archive, as in NameFormat.
	Name string `json:"name"`
	// Size is that of the archive, 0 if the storage doesn't tell.
	Size int64 `json:"size"`
	// Location is for people.
	Location string `json:"location"`
}

// Storage keeps the archives of one cluster. Names are unique.
type Storage interface {
	// Put stores what fill writes, unless fill fails. It returns ErrExists if the name is taken.
	Put(ctx context.Context, name string, fill func(io.Writer) error) (Entry, error)
	// List returns all archives in any order.
	List(ctx context.Context) ([]Entry, error)
	// Get opens an archive.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete deletes an archive. Deleting a missing one is not an error.
	Delete(ctx context.Context, name string) error
}

// Errors of storages.
var (
	ErrExists   = errors.New("an archive of this time exists")
	ErrNotFound = errors.New("no such archive")
)

// NameFormat is the time layout of names.
const NameFormat = "20060102T150405Z"

// Name returns the name of an archive.
func Name(at time.Time) string { return at.UTC().Format(NameFormat) }

// IsName reports whether a name is one that Name returns.
func IsName(name string) bool { return namePattern.MatchString(name) }

// Time returns when an archive was made, according to its name.
func (e Entry) Time() time.Time {
	at, err := time.Parse(NameFormat, e.Name)
	if err != nil {
		return time.Time{}
	}
	return at
}

var namePattern = regexp.MustCompile(`^\d{8}T\d{6}Z$`)

// Management takes the place of the namespace for backups of management clusters, so that they can
// share a location with snapshots of etcd. It is not the name of a namespace.
const Management = "management.cluster"

// Cluster is the cluster whose archives a storage keeps.
type Cluster struct{ Namespace, Name string }

// Access is how remote storages are reached.
type Access struct {
	Registry RegistryAccess
	S3       S3Access
	// Temporary is the directory for archives until they are sent; the system's if empty.
	Temporary string
}

// Open returns the storage at a location: a directory, oci:// with a registry and a repository, or
// s3:// with a bucket and a prefix. It makes no request.
func Open(location string, cluster Cluster, access Access) (Storage, error) {
	scheme, rest, remote := strings.Cut(location, "://")
	switch {
	case location == "":
		return nil, errors.New("the location of snapshots is empty")
	case !remote:
		return Directory{Path: filepath.Join(location, cluster.Namespace, cluster.Name)}, nil
	case scheme == "oci":
		return newRegistry(rest, cluster, access)
	case scheme == "s3":
		return newObjects(rest, cluster, access)
	default:
		return nil, fmt.Errorf("unsupported location %q: use a directory, oci://REGISTRY/REPOSITORY or s3://BUCKET/PREFIX", location)
	}
}

// Newest returns the entries from the newest to the oldest.
func Newest(entries []Entry) []Entry {
	out := slices.Clone(entries)
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(b.Name, a.Name) })
	return out
}

// Find returns the entry of a name, or the newest without one.
func Find(ctx context.Context, s Storage, name string) (Entry, error) {
	all, err := s.List(ctx)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range Newest(all) {
		if name == "" || e.Name == name {
			return e, nil
		}
	}
	return Entry{}, ErrNotFound
}

// Prune deletes all archives but the newest ones and returns what it deleted. Zero keeps all.
func Prune(ctx context.Context, s Storage, keep int) ([]Entry, error) {
	all, err := s.List(ctx)
	if err != nil || keep <= 0 || len(all) <= keep {
		return nil, err
	}
	old := Newest(all)[keep:]
	for i, e := range old {
		if err := s.Delete(ctx, e.Name); err != nil {
			return old[:i], fmt.Errorf("deleting the old archive %s: %w", e.Location, err)
		}
	}
	return old, nil
}
