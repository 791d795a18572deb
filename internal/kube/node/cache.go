package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockPrefix = ".lock-"
	tempPrefix = ".tmp-"
	// lockInterval is how often a waiting process tries again.
	lockInterval = 100 * time.Millisecond
)

var errLocked = errors.New("locked by another process")

// Cache is a directory of complete entries, which are directories.
type Cache struct {
	Dir string
}

// DefaultCache is the cache of the current user.
func DefaultCache() (Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("finding the user's cache directory: %w; set XDG_CACHE_HOME to an absolute path", err)
	}
	return Cache{Dir: filepath.Join(dir, "drover", "node")}, nil
}

// Make returns the directory of that name, creating it with fill if necessary. When several
// processes ask for the same one, one creates it and the others wait; files of killed processes are
// removed. The directory is kept for at least an hour, and as long as a machine holds it.
func (c Cache) Make(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) (string, error) {
	final := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", fmt.Errorf("creating the cache: %w", err)
	}
	unlock, err := c.lock(ctx, name)
	if readOnly(err) && present(final) {
		return final, nil // Nobody can remove it either.
	}
	if err != nil {
		return "", fmt.Errorf("locking cache entry %q: %w", name, err)
	}
	defer unlock()
	if present(final) {
		return final, touch(final)
	}
	return final, c.fill(ctx, name, fill)
}

// fill fills a temporary directory and renames it. The caller holds the lock.
func (c Cache) fill(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) error {
	temp := filepath.Join(c.Dir, tempPrefix+name)
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("removing files of an interrupted run: %w", err)
	}
	if err := os.Mkdir(temp, 0o755); err != nil {
		return fmt.Errorf("creating cache entry %q: %w", name, err)
	}
	defer os.RemoveAll(temp) // A no-op once it has been renamed.
	if err := fill(ctx, temp); err != nil {
		return err
	}
	if err := syncTree(temp); err != nil {
		return fmt.Errorf("writing cache entry %q to disk: %w", name, err)
	}
	if err := os.Rename(temp, filepath.Join(c.Dir, name)); err != nil {
		return fmt.Errorf("publishing cache entry %q: %w", name, err)
	}
	return nil
}

// Latest returns the most recently used directory with that prefix.
func (c Cache) Latest(prefix string) (dir string, ok bool) {
	dirs, _ := filepath.Glob(filepath.Join(c.Dir, prefix+"*"))
	var newest time.Time
	for _, d := range dirs {
		info, err := os.Stat(d)
		if err == nil && (dir == "" || info.ModTime().After(newest)) {
			dir, newest = d, info.ModTime()
		}
	}
	return dir, dir != ""
}

func present(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// touch marks the entry as used.
func touch(dir string) error {
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil && !readOnly(err) {
		return fmt.Errorf("using cache entry %q: %w", dir, err)
	}
	return nil
}

func readOnly(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}

// lock waits until this process is the only one that works on the entry.
func (c Cache) lock(ctx context.Context, name string) (unlock func(), err error) {
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for {
		unlock, err = c.tryLock(name)
		if !errors.Is(err, errLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

func (c Cache) tryLock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.Dir, lockPrefix+name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { f.Close() }, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, errLocked
	}
	return nil, err
}

// syncTree flushes the files below dir to disk.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
