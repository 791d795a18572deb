// Package passed remembers which packages have passed their tests, by content: the compiled code,
// and the files and variables that the tests have read. The go command remembers results as well,
// but by the paths and times of files, so that every other checkout of the same commit is tested
// again.
//
//	<user cache>/drover/passed/
//	  3f2a….json    the result and the inputs of one package, named after its compiled code
//
// It runs no tests and keeps no failures. Start with Store.Find and Store.Add.
package passed

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/hack/test/events"
	"github.com/drover-dev/drover/internal/base/atomicfile"
)

// unused is how long an entry is kept after its last use.
const unused = 30 * 24 * time.Hour

// Store is a directory of results.
type Store struct {
	dir, root string
}

// entry is the result of a package.
type entry struct {
	Inputs Inputs
	Result events.Result
}

// Open returns the store of this user for the checkout at root, without outdated entries.
func Open(root string) (*Store, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the user's cache directory: %w", err)
	}
	s := &Store{dir: filepath.Join(cache, "drover", "passed"), root: root}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the cache of test results: %w", err)
	}
	s.evict(time.Now().Add(-unused))
	return s, nil
}

// Find returns the result of the package with a key, if its inputs are still the same.
func (s *Store) Find(key string) (events.Result, bool) {
	data, err := os.ReadFile(s.path(key))
	if err != nil {
		return events.Result{}, false
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil || !e.Inputs.unchanged(s.root) {
		return events.Result{}, false
	}
	now := time.Now()
	_ = os.Chtimes(s.path(key), now, now) // it would only be evicted earlier
	e.Result.Cached = true
	e.Result.Closing = "ok  \t" + e.Result.Package + "\t(cached)"
	return e.Result, true
}

// Add remembers a package that has passed. The log lists its inputs, in the form of the testing
// package; dir is where the tests ran.
func (s *Store) Add(key string, result events.Result, log []byte, dir string) error {
	data, err := json.Marshal(entry{Inputs: observe(log, s.root, dir), Result: result})
	if err != nil {
		return fmt.Errorf("remembering the result of %q: %w", result.Package, err)
	}
	return atomicfile.Write(s.path(key), data, 0o600)
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, key+".json") }

// evict removes entries that were last used before a time. Errors don't matter: the next run tries
// again.
func (s *Store) evict(before time.Time) {
	files, _ := os.ReadDir(s.dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(s.dir, f.Name()))
		}
	}
}
