package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/payload"
)

// unpacked returns the entry of the cache with the content of the payload, and unpacks it first if
// no entry has it. An entry that was built here counts as well, so that a developer's machine
// doesn't hold the same file twice.
func unpacked(c cache.Cache, p payload.Payload) (cache.Entry, error) {
	for _, e := range c.List(p.Version) {
		if e.SHA256 == p.SHA256 && e.Touch() == nil {
			return e, nil
		}
	}
	e, err := c.Create(context.Background(), cache.Request{
		Name: cache.Name(p.Version, "p"+p.SHA256[:16]),
		Fill: func(_ context.Context, dir string) (cache.Manifest, error) {
			return cache.Manifest{Version: p.Version, Key: p.Key}, unpackInto(dir, p)
		},
	})
	if errors.Is(err, syscall.ENOSPC) {
		return e, fmt.Errorf("unpacking Kubernetes %s into %q requires %d MiB: %w; free some space or set XDG_CACHE_HOME to a larger disk",
			p.Version, c.Dir, p.Size>>20, err)
	}
	if err != nil {
		return e, fmt.Errorf("unpacking Kubernetes %s: %w", p.Version, err)
	}
	return e, nil
}

func unpackInto(dir string, p payload.Payload) error {
	f, err := os.OpenFile(filepath.Join(dir, "kube"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(p.Unpack(f), f.Close()); err != nil {
		return err
	}
	return Link(dir, "kube")
}
