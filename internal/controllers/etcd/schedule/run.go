package schedule

import (
	"context"

	"github.com/drover-dev/drover/internal/workload/etcd/backup"
	"github.com/drover-dev/drover/internal/workload/etcd/storage"
)

// run is one snapshot.
type run struct {
	options backup.Options
	keep    int
	save    func(context.Context, backup.Options) (backup.Saved, error)
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
