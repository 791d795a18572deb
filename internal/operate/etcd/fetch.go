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
func (r *Restore) fetch(ctx context.Context) error {
	from, err := r.Storage.Get(ctx, r.Snapshot)
	if err != nil {
		return err
	}
	if f, ok := from.(io.ReadSeekCloser); ok {
		r.archive, r.close = f, func() { _ = f.Close() }
		return nil
	}
	defer from.Close()
	f, err := os.CreateTemp("", "drover-restore-*")
	if err != nil {
		return err
	}
	r.archive, r.close = f, func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }
	if _, err := io.Copy(f, from); err != nil {
		return fmt.Errorf("downloading snapshot %s: %w", r.Snapshot, err)
	}
	return nil
}
