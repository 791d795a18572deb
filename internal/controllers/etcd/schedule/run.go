package schedule

import (
	"context"
	"fmt"
	"io"

	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/workload/etcd/backup"
)

// run is one snapshot.
type run struct {
	options backup.Options
	keep    int
	save    func(context.Context, backup.Options) (backup.Saved, error)
}

// maxArchive is the largest archive that the manager saves. What a workload cluster sends must not
// fill the disk that all clusters share.
const maxArchive = 512 << 20

// limited is a storage for archives up to a size.
type limited struct {
	storage.Storage

	most int64
}

// Put implements storage.Storage.
func (l limited) Put(ctx context.Context, name string, fill func(io.Writer) error) (storage.Entry, error) {
	return l.Storage.Put(ctx, name, func(w io.Writer) error { return fill(&limitedWriter{w, l.most, l.most}) })
}

type limitedWriter struct {
	io.Writer

	left, most int64
}

func (w *limitedWriter) Write(data []byte) (int, error) {
	if w.left -= int64(len(data)); w.left < 0 {
		return 0, fmt.Errorf("the archive is larger than %d MiB, the most that the manager saves: use drover etcd snapshot", w.most>>20)
	}
	return w.Writer.Write(data)
}

// result is a snapshot that was saved.
type result struct {
	backup.Saved

	// pruneProblem is why old ones could not be deleted, or "".
	pruneProblem string
}

// do saves the snapshot and deletes old ones.
func (r run) do(ctx context.Context) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	saved, err := r.save(ctx, r.options)
	if err != nil {
		return nil, err
	}
	out := result{Saved: saved}
	if _, err := storage.Prune(ctx, r.options.Storage, r.keep); err != nil {
		out.pruneProblem = err.Error()
	}
	return out, nil
}
