package cache

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// keepEntries is how many entries of a version are always kept.
	keepEntries = 2
	// inHand is how long an entry is kept after its last use: building it again takes minutes.
	inHand = 24 * time.Hour
)

// prune removes unused entries of a version. Entries that can't be removed now are left to the next
// call.
func (c Cache) prune(version string) {
	all := c.List(version)
	for _, e := range all[min(keepEntries, len(all)):] {
		if time.Since(e.used) < inHand || e.running() {
			continue
		}
		unlock, err := tryLock(c.lockFile(filepath.Base(e.Dir)))
		if err != nil {
			continue
		}
		c.remove(e)
		unlock()
	}
}

// remove moves the entry away, then deletes its files. If another process has touched the entry in
// between, it is put back.
func (c Cache) remove(e Entry) {
	temp, err := os.MkdirTemp(c.Dir, tempPrefix+filepath.Base(e.Dir)+".")
	if err != nil {
		return
	}
	defer os.RemoveAll(temp)
	away := filepath.Join(temp, "entry")
	if os.Rename(e.Dir, away) != nil {
		return
	}
	if now, ok := c.open(away); ok && !now.used.Equal(e.used) {
		_ = os.Rename(away, e.Dir) // If this fails, the next user creates it again.
	}
}

// running reports whether a process runs the entry's binary, which the supervisor of a plane
// restarts by its path. It is also true if that can't be determined.
func (e Entry) running() bool {
	programs, _ := filepath.Glob("/proc/[0-9]*/exe")
	return len(programs) == 0 || slices.ContainsFunc(programs, func(link string) bool {
		program, err := os.Readlink(link)
		return err == nil && program == e.Binary()
	})
}
