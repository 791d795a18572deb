package cache

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// keepEntries is how many entries of a version stay in any case.
	keepEntries = 2
	// inHand is how long an entry stays that somebody has asked for: building it
	// again takes minutes.
	inHand = 24 * time.Hour
)

// prune removes entries of a version that nobody needs. What it can't remove
// now, because someone is at it or for any other reason, is left to the next
// time: there being too much is no failure.
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

// remove takes the entry away at once and its files after that. Somebody who
// found the entry a moment ago has touched it by now: then it is put back.
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
	if now, ok := open(away); ok && !now.used.Equal(e.used) {
		_ = os.Rename(away, e.Dir) // If it fails, whoever uses it makes it anew.
	}
}

// running tells whether a process runs the entry's binary: the supervisor of a
// plane starts it again by its path. It is also true where that can't be found
// out.
func (e Entry) running() bool {
	programs, _ := filepath.Glob("/proc/[0-9]*/exe")
	return len(programs) == 0 || slices.ContainsFunc(programs, func(link string) bool {
		program, err := os.Readlink(link)
		return err == nil && program == e.Binary()
	})
}
