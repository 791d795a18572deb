package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCacheMakesAnEntryOnce(t *testing.T) {
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

func TestCacheKeepsNothingOfAFailure(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	// What a killed process left.
	if err := os.Mkdir(filepath.Join(c.Dir, tempPrefix+"a"), 0o755); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if _, err := c.Make(t.Context(), "a", func(context.Context, string) error { return boom }); !errors.Is(err, boom) {
		t.Fatalf("error %v", err)
	}
	if _, ok := c.Latest("a"); ok {
		t.Error("a failed entry is there")
	}
	dir, err := c.Make(t.Context(), "a", func(context.Context, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if latest, _ := c.Latest("a"); latest != dir {
		t.Errorf("latest entry %q, want %q", latest, dir)
	}
}

func TestFindProgramsSaysWhatToDo(t *testing.T) {
	t.Setenv(EnvDir, "")
	if _, err := FindPrograms("", Cache{Dir: t.TempDir()}); !IsMissing(err) {
		t.Errorf("error %v", err)
	}
	if _, err := FindPrograms(t.TempDir(), Cache{}); !IsMissing(err) {
		t.Errorf("error %v", err)
	}
}
