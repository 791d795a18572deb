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
	lockLook    = 20 * time.Millisecond
)

// Write makes a file with the kubeconfig alone. It replaces a file that holds
// an earlier kubeconfig of the same cluster and nothing else.
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

// MayWrite says that a file is not there, or holds a kubeconfig of that origin
// and nothing else.
func (o Origin) MayWrite(path string) error {
	old, err := clientcmd.LoadFromFile(path)
	if err == nil && !o.alone(old) {
		err = fs.ErrExist
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &TakenError{path, o.Cluster}
	}
	return nil
}

// TakenError means that a file is not replaced, for it may be somebody's.
type TakenError struct{ Path, Cluster string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("file %q exists and is not a kubeconfig of %s alone: choose another name", e.Path, e.Cluster)
}

func (o Origin) alone(cfg *clientcmdapi.Config) bool {
	for _, c := range cfg.Contexts {
		if !o.marked(c.Extensions) {
			return false
		}
	}
	return len(cfg.Contexts) > 0
}

// Merge adds the kubeconfig to a file, or makes it. All that is in the file
// for other clusters stays. Of several who change the file at once, kubectl
// included, each change is kept.
func (k *Kubeconfig) Merge(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the directory of %q: %w", path, err)
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
		return fmt.Errorf("file %q is no kubeconfig, nothing was changed: %w", path, err)
	}
	if err := k.addTo(cfg); err != nil {
		return fmt.Errorf("file %q was not changed: %w", path, err)
	}
	data, err := clientcmd.Write(*cfg)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return replace(path, data)
}

// lock does as kubectl does: the file beside it exists while it is changed.
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
			return nil, fmt.Errorf("another program has been changing %q for long: if none runs, remove %q", path, name)
		case <-time.After(lockLook):
		}
	}
}

// replace keeps what leads to the file, who owns it and who may read it.
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
