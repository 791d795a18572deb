// Package recovery reads backups of management clusters, and compares them with the machines that
// exist, so that a new management cluster takes over only clusters that it knows completely.
//
// It changes nothing: package lifecycle plans a recovery, and package bootstrap restores objects.
// Start with Open and Compare.
package recovery

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"filippo.io/age"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/objects"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
)

// Backup is a verified backup of a management cluster.
type Backup struct {
	storage.Entry
	Manifest archive.Manifest
	Objects  objects.Set
}

// Source is where a backup is, and what opens it.
type Source struct {
	Storage storage.Storage
	// Cluster is the management cluster.
	Cluster string
	// Name selects a backup; the newest if empty.
	Name       string
	Identities []age.Identity
	// Signers are the CAs of the management cluster.
	Signers []*x509.Certificate
}

// Open reads and verifies a backup as a whole.
func Open(ctx context.Context, s Source) (*Backup, error) {
	entry, err := storage.Find(ctx, s.Storage, s.Name)
	switch {
	case errors.Is(err, storage.ErrNotFound) && s.Name != "":
		return nil, fmt.Errorf("cluster %q has no backup %s", s.Cluster, s.Name)
	case errors.Is(err, storage.ErrNotFound):
		return nil, fmt.Errorf("cluster %q has no backups there: name their location with --from", s.Cluster)
	case err != nil:
		return nil, fmt.Errorf("listing the backups of cluster %q: %w", s.Cluster, err)
	}
	file, err := s.Storage.Get(ctx, entry.Name)
	if err != nil {
		return nil, fmt.Errorf("opening backup %s: %w", entry.Location, err)
	}
	defer file.Close()
	b, err := read(file, s)
	if err != nil {
		return nil, fmt.Errorf("verifying backup %s: %w; nothing was changed", entry.Location, err)
	}
	// Names are not signed: an old backup could take the place of a newer one.
	if made := storage.Name(b.Manifest.Created); made != entry.Name {
		return nil, fmt.Errorf("verifying backup %s: it was made at %s and renamed: rename it to that, or select another one with --backup; nothing was changed", entry.Location, made)
	}
	b.Entry = entry
	return b, nil
}

func read(file io.Reader, s Source) (*Backup, error) {
	var content bytes.Buffer
	m, err := archive.Objects().Read(file, archive.Key{Identities: s.Identities, Signers: s.Signers}, &content)
	if err != nil {
		return nil, err
	}
	if m.Cluster != s.Cluster {
		return nil, fmt.Errorf("%w: it is of management cluster %q, not of %q", archive.ErrForeign, m.Cluster, s.Cluster)
	}
	set, err := objects.Decode(content.Bytes())
	if err != nil {
		return nil, err
	}
	return &Backup{Manifest: m, Objects: set}, nil
}

// CheckVersion rejects a backup of a newer Drover than own, whose objects this one may not know.
func (b *Backup) CheckVersion(own string) error {
	if version.Older(own, b.Manifest.Drover) {
		return fmt.Errorf("the backup was made by Drover %s, and this is Drover %s: use that version or a later one", b.Manifest.Drover, own)
	}
	return nil
}

// Age returns how old the backup is.
func (b *Backup) Age(now time.Time) time.Duration {
	return now.Sub(b.Manifest.Created).Round(time.Second)
}

// Config returns the spec of the management cluster.
func (b *Backup) Config(ctx context.Context) (*spec.Config, error) {
	clusters, err := b.Objects.Clusters()
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		if c.Name == b.Manifest.Cluster && c.IsSelfManaged() {
			return b.config(ctx, c)
		}
	}
	return nil, fmt.Errorf("the backup has no spec of management cluster %q: name a file with one", b.Manifest.Cluster)
}

// config returns a spec as a user would have written it.
func (b *Backup) config(ctx context.Context, c *anywherev1.Cluster) (*spec.Config, error) {
	kinds, err := scheme.New()
	if err != nil {
		return nil, err
	}
	found, err := spec.Gather(ctx, bootstrap.Reader(b.Objects, kinds), c)
	if err != nil {
		return nil, err
	}
	text, err := spec.Marshal(found)
	if err != nil {
		return nil, err
	}
	config, err := spec.Read(text)
	if err != nil {
		return nil, fmt.Errorf("reading the spec of management cluster %q in the backup: %w", c.Name, err)
	}
	spec.Default(config)
	return config, nil
}
