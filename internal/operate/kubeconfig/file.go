package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

const (
	lockTimeout = 15 * time.Second
	lockRetry   = 20 * time.Millisecond
)

// Write creates a file with nothing but the kubeconfig. It replaces a file that contains an earlier
// kubeconfig of the same cluster and nothing else.
func (k *Kubeconfig) Write(path string) error {
	data, err := k.Encode()
	if err != nil {
		return err
	}
	if err := k.origin.MayWrite(path); err != nil {
		return err
	}
	return replace(path, data)
}

// MayWrite returns a TakenError unless the file does not exist or contains only a kubeconfig of
// that origin.
func (o Origin) MayWrite(path string) error {
	old, err := clientcmd.LoadFromFile(path)
	if err == nil && !o.ownsAllContexts(old) {
		err = fs.ErrExist
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &TakenError{path, o.Cluster}
	}
	return nil
}

// TakenError means that a file contains something else, and is not replaced.
type TakenError struct{ Path, Cluster string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("file %q exists and contains more than the kubeconfig of %s; choose another file", e.Path, e.Cluster)
}

func (o Origin) ownsAllContexts(cfg *clientcmdapi.Config) bool {
	for _, c := range cfg.Contexts {
		if !o.marked(c.Extensions) {
			return false
		}
	}
	return len(cfg.Contexts) > 0
}

// Merge adds the kubeconfig to a file and keeps the entries of other clusters. It creates the file
// if necessary. Concurrent changes, including those of kubectl, are all kept.
func (k *Kubeconfig) Merge(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the directory of %q: %w", path, err)
	}
	unlock, err := lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	cfg, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		cfg, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("merging into %q: not a kubeconfig, left unchanged: %w", path, err)
	}
	if err := k.addTo(cfg); err != nil {
		return fmt.Errorf("merging into %q: %w", path, err)
	}
	data, err := clientcmd.Write(*cfg)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return replace(path, data)
}

// lock uses the same protocol as kubectl: a file with the suffix .lock exists while the kubeconfig
// is being changed.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	name := path + ".lock"
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			_ = f.Close()
			return func() { _ = os.Remove(name) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("locking %q: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("timed out after %s waiting for the lock of %q; if no other program is changing the file, remove %q", lockTimeout, path, name)
		case <-time.After(lockRetry):
		}
	}
}

// replace writes a file and keeps symbolic links to it, its owner and its mode.
func replace(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := os.FileMode(0o600)
	info, err := os.Stat(path)
	if err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.Write(path, data, mode); err != nil {
		return err
	}
	if info == nil {
		return nil
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}
