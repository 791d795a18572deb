package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// fetch opens the archive. One that can't be read twice is copied to a temporary file, encrypted as
// it is.
func (r *Restore) fetch(ctx context.Context) (end func(), err error) {
	from, err := r.Storage.Get(ctx, r.Snapshot)
	if err != nil {
		return nil, err
	}
	if f, ok := from.(io.ReadSeekCloser); ok {
		r.archive = f
		return func() { _ = f.Close() }, nil
	}
	defer from.Close()
	f, err := os.CreateTemp("", "drover-restore-*")
	if err != nil {
		return nil, err
	}
	end = func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }
	if _, err := io.Copy(f, from); err != nil {
		end()
		return nil, fmt.Errorf("downloading snapshot %s: %w", r.Snapshot, err)
	}
	r.archive = f
	return end, nil
}
