package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// Entries of each kind that are kept although no machine holds them.
	keepImages   = 4
	keepPrograms = 2
	keepParts    = 8
	// inHand is how long an entry is kept after its last use, whether or not a machine holds it.
	inHand = time.Hour

	holdersDir = "holders"
	heldLink   = "image"
)

// Hold keeps the image in the cache as long as the directory of a machine exists. The two link to
// each other: a machine that is reinstalled from another image no longer holds this one.
func (i Image) Hold(machine string) error {
	holders := filepath.Join(i.Dir, holdersDir)
	sum := sha256.Sum256([]byte(machine))
	link := filepath.Join(holders, hex.EncodeToString(sum[:8]))
	err := errors.Join(os.MkdirAll(holders, 0o755), relink(machine, link), relink(i.Dir, filepath.Join(machine, heldLink)))
	if err != nil {
		return fmt.Errorf("holding the machine image %q: %w", i.Dir, err)
	}
	return nil
}

func relink(target, link string) error {
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, link)
}

// held reports whether a machine holds the entry. It is also true if that can't be determined.
func held(dir string) bool {
	links, err := filepath.Glob(filepath.Join(dir, holdersDir, "*"))
	if err != nil {
		return true
	}
	return slices.ContainsFunc(links, func(link string) bool {
		machine, err := os.Readlink(link)
		if err != nil {
			return true
		}
		target, err := os.Readlink(filepath.Join(machine, heldLink))
		if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		return err != nil || target == dir
	})
}

// prune removes unused entries of one kind except the most recently used ones, and files of killed
// processes. It skips entries that are locked.
func (c Cache) prune(kind string, keep int) error {
	var errs []error
	temps, _ := filepath.Glob(filepath.Join(c.Dir, tempPrefix+kind+"*"))
	for _, temp := range temps {
		name := strings.TrimPrefix(filepath.Base(temp), tempPrefix)
		errs = append(errs, c.whenFree(name, func() error { return os.RemoveAll(temp) }))
	}
	for _, dir := range c.leastUsed(kind, keep) {
		errs = append(errs, c.whenFree(filepath.Base(dir), func() error { return c.remove(dir) }))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing old entries of the cache: %w", err)
	}
	return nil
}

// leastUsed returns all entries of a kind except the most recently used ones.
func (c Cache) leastUsed(kind string, keep int) []string {
	dirs, _ := filepath.Glob(filepath.Join(c.Dir, kind+"*"))
	slices.SortFunc(dirs, func(a, b string) int { return lastUse(b).Compare(lastUse(a)) })
	return dirs[min(keep, len(dirs)):]
}

func lastUse(dir string) time.Time {
	info, err := os.Stat(dir)
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// whenFree calls do under the lock of the entry, unless another process holds it.
func (c Cache) whenFree(name string, do func() error) error {
	unlock, err := c.tryLock(name)
	if errors.Is(err, errLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// remove moves an entry away, then deletes its files. The caller holds its lock.
func (c Cache) remove(dir string) error {
	if time.Since(lastUse(dir)) < inHand || held(dir) {
		return nil
	}
	temp := filepath.Join(c.Dir, tempPrefix+filepath.Base(dir))
	if err := os.Rename(dir, temp); err != nil {
		return err
	}
	return os.RemoveAll(temp)
}
