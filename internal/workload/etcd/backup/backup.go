// Package backup saves snapshots of the etcd of a workload cluster: it streams one from a member
// into an archive in a storage. Nothing unencrypted touches a disk. Start with Save.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"filippo.io/age"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

// Options select a cluster, and where and for whom its snapshot is saved.
type Options struct {
	Cluster    etcd.Cluster
	Storage    storage.Storage
	Recipients []age.Recipient
	Now        time.Time
}

// Saved is a saved snapshot.
type Saved struct {
	storage.Entry

	Manifest archive.Manifest `json:"manifest"`
	Member   string           `json:"member"`
}

// Save saves a snapshot. It appears whole or not at all.
func Save(ctx context.Context, o Options) (Saved, error) {
	key, _, err := etcd.Authority(ctx, o.Cluster)
	if err != nil {
		return Saved{}, err
	}
	if key == nil {
		return Saved{}, errors.New("the management plane doesn't have the key of the cluster's CA, which signs snapshots")
	}
	e, err := etcd.Open(ctx, o.Cluster)
	if err != nil {
		return Saved{}, err
	}
	snapshot, err := e.Snapshot(ctx)
	if err != nil {
		return Saved{}, err
	}
	defer snapshot.Close()
	m := archive.Manifest{
		Namespace: o.Cluster.Namespace, Cluster: o.Cluster.Name, Created: o.Now.UTC().Truncate(time.Second),
		Size: snapshot.Size, Etcd: snapshot.Version, Revision: snapshot.Revision, Drover: version.Get().Version,
	}
	entry, err := o.Storage.Put(ctx, storage.Name(m.Created), func(w io.Writer) error {
		return archive.Write(w, m, snapshot, archive.Seal{Key: key, Recipients: o.Recipients})
	})
	if err != nil {
		return Saved{}, fmt.Errorf("saving the snapshot: %w; no snapshot was saved", err)
	}
	return Saved{entry, m, snapshot.Member}, nil
}
