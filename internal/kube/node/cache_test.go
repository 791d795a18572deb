package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCacheCreatesAnEntryOnce(t *testing.T) {
	c := Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			dir, err := c.Make(t.Context(), "programs-1", func(_ context.Context, dir string) error {
				made.Add(1)
				return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
}

func TestFailedCacheEntryIsRemoved(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	// Leftovers of a killed process.
	if err := os.Mkdir(filepath.Join(c.Dir, tempPrefix+"a"), 0o755); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if _, err := c.Make(t.Context(), "a", func(context.Context, string) error { return boom }); !errors.Is(err, boom) {
		t.Fatalf("got error %v, want %v", err, boom)
	}
	if _, ok := c.Latest("a"); ok {
		t.Error("a failed entry is in the cache, want it removed")
	}
	dir, err := c.Make(t.Context(), "a", func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if latest, _ := c.Latest("a"); latest != dir {
		t.Errorf("latest entry %q, want %q", latest, dir)
	}
}

func TestFindProgramsErrorSuggestsARemedy(t *testing.T) {
	t.Setenv(EnvDir, "")
	if _, err := FindPrograms("", Cache{Dir: t.TempDir()}); !IsMissing(err) {
		t.Errorf("error %v", err)
	}
	if _, err := FindPrograms(t.TempDir(), Cache{}); !IsMissing(err) {
		t.Errorf("error %v", err)
	}
}

// entry creates an entry that was last used that long ago.
func entry(t *testing.T, c Cache, name string, ago time.Duration) string {
	t.Helper()
	dir, err := c.Make(t.Context(), name, func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	used := time.Now().Add(-ago)
	if err := os.Chtimes(dir, used, used); err != nil {
		t.Fatal(err)
	}
	return dir
}

func entries(t *testing.T, c Cache) (names []string) {
	t.Helper()
	files, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			names = append(names, f.Name())
		}
	}
	return names
}

func TestPruneKeepsRecentAndUsedEntries(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	entry(t, c, "image-recent", 2*time.Hour)
	entry(t, c, "image-old", 9*time.Hour)
	held := Image{Dir: entry(t, c, "image-held", 8*time.Hour)}
	released := Image{Dir: entry(t, c, "image-released", 8*time.Hour)}
	replaced := Image{Dir: entry(t, c, "image-replaced", 8*time.Hour)}
	entry(t, c, "programs-old", 9*time.Hour)
	entry(t, c, "image-busy", 9*time.Hour)
	for _, temp := range []string{".tmp-image-crashed", ".tmp-image-busy"} {
		if err := os.Mkdir(filepath.Join(c.Dir, temp), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	machines := t.TempDir()
	for _, hold := range []struct {
		image   Image
		machine string
	}{{held, "one"}, {released, "two"}, {replaced, "three"}, {held, "three"}} {
		machine := filepath.Join(machines, hold.machine)
		if err := os.MkdirAll(machine, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := hold.image.Hold(machine); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-8 * time.Hour) // creating a link is a change, too
		if err := os.Chtimes(hold.image.Dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(machines, "two")); err != nil {
		t.Fatal(err)
	}
	unlock, err := c.tryLock("image-busy")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()

	if err := c.prune(imagePrefix, 1); err != nil {
		t.Fatal(err)
	}
	want := []string{".tmp-image-busy", "image-busy", "image-held", "image-recent", "programs-old"}
	if diff := cmp.Diff(want, entries(t, c)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestPruneKeepsJustRequestedEntries(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	entry(t, c, "image-a", 9*time.Hour)
	entry(t, c, "image-b", 9*time.Hour)
	if _, err := c.Make(t.Context(), "image-a", func(context.Context, string) error { return errors.New("made again") }); err != nil {
		t.Fatal(err)
	}
	if err := c.prune(imagePrefix, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"image-a"}, entries(t, c)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestConcurrentPruneKeepsReturnedEntries(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := c.prune(imagePrefix, 0); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 100 {
		dir := entry(t, c, "image-a", 2*inHand) // prune may remove it now
		again, err := c.Make(t.Context(), "image-a", func(_ context.Context, dir string) error {
			return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
		})
		if err != nil || again != dir {
			t.Fatalf("entry %q, %v", again, err)
		}
		if _, err := os.Stat(filepath.Join(again, "file")); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	wg.Wait()
}

func TestOnlyChangedPartsAreCompiled(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	compiled := map[string]int{}
	part := func(key string, names ...string) Part {
		return Part{Key: key, Compile: func(_ context.Context, dir string) error {
			compiled[key]++
			for _, name := range names {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(key), 0o755); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	all := Names()
	first, err := c.MakePrograms(t.Context(), []Part{part("one", all[1:]...), part("two", all[0])})
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.MakePrograms(t.Context(), []Part{part("one", all[1:]...), part("three", all[0])})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"one": 1, "two": 1, "three": 1}, compiled); diff != "" {
		t.Errorf("compiled (-want +got):\n%s", diff)
	}
	for programs, want := range map[Programs]string{first: "two", second: "three"} {
		if data, err := os.ReadFile(programs.Path(all[0])); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v; want %q", programs.Path(all[0]), data, err, want)
		}
	}
	if _, err := c.MakePrograms(t.Context(), []Part{part("one", all[1:]...)}); !IsMissing(err) {
		t.Errorf("without %q: error %v", all[0], err)
	}
}
