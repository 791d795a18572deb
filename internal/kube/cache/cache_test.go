package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill makes an entry whose binary has the given content.
func fill(version, content string) func(context.Context, string) (Manifest, error) {
	return func(_ context.Context, dir string) (Manifest, error) {
		return Manifest{Version: version, Key: "k"}, os.WriteFile(filepath.Join(dir, "kube"), []byte(content), 0o600)
	}
}

func mustCreate(t *testing.T, c Cache, name string, fill func(context.Context, string) (Manifest, error)) Entry {
	t.Helper()
	e, err := c.Create(t.Context(), Request{Name: name, Fill: fill})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func refuse(context.Context, string) (Manifest, error) {
	return Manifest{}, errors.New("filled although it was there")
}

func TestCreateDescribesTheBinary(t *testing.T) {
	e := mustCreate(t, Cache{Dir: t.TempDir()}, "v1.2.3-k", fill("v1.2.3", "hello"))
	want := Manifest{
		Version: "v1.2.3", Key: "k", Size: 5,
		SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
	}
	if diff := cmp.Diff(want, e.Manifest); diff != "" {
		t.Errorf("unexpected manifest (-want +got):\n%s", diff)
	}
	onDisk, err := ReadManifest(e.Binary())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, onDisk); diff != "" {
		t.Errorf("unexpected kube.json (-want +got):\n%s", diff)
	}
	info, err := os.Stat(e.Binary())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o755 {
		t.Errorf("the binary's mode is %v, want 0755", info.Mode().Perm())
	}
}

func TestCreateReplacesDamagedEntries(t *testing.T) {
	tests := []struct {
		name   string
		damage func(e Entry) error
		refill bool
	}{
		{"an untouched entry", func(Entry) error { return nil }, false},
		{"a shortened binary", func(e Entry) error { return os.Truncate(e.Binary(), 1) }, true},
		{"a missing binary", func(e Entry) error { return os.Remove(e.Binary()) }, true},
		{"a missing manifest", func(e Entry) error { return os.Remove(filepath.Join(e.Dir, "kube.json")) }, true},
		{"an unreadable manifest", func(e Entry) error { return os.Truncate(filepath.Join(e.Dir, "kube.json"), 3) }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Cache{Dir: t.TempDir()}
			if err := tt.damage(mustCreate(t, c, "v1.2.3-k", fill("v1.2.3", "hello"))); err != nil {
				t.Fatal(err)
			}
			filled := false
			e := mustCreate(t, c, "v1.2.3-k", func(ctx context.Context, dir string) (Manifest, error) {
				filled = true
				return fill("v1.2.3", "hello")(ctx, dir)
			})
			if filled != tt.refill {
				t.Errorf("filled again: got %v, want %v", filled, tt.refill)
			}
			if data, err := os.ReadFile(e.Binary()); err != nil || string(data) != "hello" {
				t.Errorf("the binary holds %q (%v)", data, err)
			}
		})
	}
}

func TestConcurrentCreateFillsOnce(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	var fills, waits atomic.Int32
	started, release := make(chan struct{}), make(chan struct{})
	request := Request{
		Name: "v1.2.3-k",
		Fill: func(ctx context.Context, dir string) (Manifest, error) {
			fills.Add(1)
			close(started)
			<-release
			return fill("v1.2.3", "hello")(ctx, dir)
		},
		Waiting: func() {
			if waits.Add(1) == 3 {
				close(release)
			}
		},
	}
	var wg sync.WaitGroup
	create := func() {
		if _, err := c.Create(t.Context(), request); err != nil {
			t.Error(err)
		}
	}
	wg.Go(create)
	<-started
	for range 3 {
		wg.Go(create)
	}
	wg.Wait()
	if fills.Load() != 1 || waits.Load() != 3 {
		t.Errorf("%d filled and %d waited, want 1 and 3", fills.Load(), waits.Load())
	}
}

func TestInterruptedCreateStopsWaiting(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	unlock, err := tryLock(c.lockFile("v1.2.3-k"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.Create(ctx, Request{Name: "v1.2.3-k", Fill: refuse, Waiting: cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}

func TestFailedCreateCleansUp(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	broken := errors.New("broken")
	_, err := c.Create(t.Context(), Request{Name: "v1.2.3-k", Fill: func(ctx context.Context, dir string) (Manifest, error) {
		_, err := fill("v1.2.3", "half")(ctx, dir)
		return Manifest{}, errors.Join(broken, err)
	}})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want the one of the fill function", err)
	}
	if left := directories(t, c); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestCreateRemovesLeftoversOfACrash(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	for _, name := range []string{".tmp-v1.2.3-k.111", ".tmp-v1.2.3-crashed.222", ".tmp-v1.2.3-running.333"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := tryLock(c.lockFile("v1.2.3-running"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	mustCreate(t, c, "v1.2.3-k", fill("v1.2.3", "hello"))
	want := []string{".tmp-v1.2.3-running.333", "v1.2.3-k"}
	if diff := cmp.Diff(want, directories(t, c)); diff != "" {
		t.Errorf("unexpected directories (-want +got):\n%s", diff)
	}
}

func directories(t *testing.T, c Cache) []string {
	t.Helper()
	files, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		if f.IsDir() {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names
}

func TestListSortsByLastUse(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	for i, key := range []string{"a", "b", "c"} {
		e := mustCreate(t, c, Name("v1.2.3", key), fill("v1.2.3", key))
		used := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(e.Dir, "kube.json"), used, used); err != nil {
			t.Fatal(err)
		}
	}
	mustCreate(t, c, Name("v1.2.4", "d"), fill("v1.2.4", "d"))
	mustCreate(t, c, Name("v1.2.3", "e"), func(_ context.Context, dir string) (Manifest, error) {
		m, err := fill("v1.2.3", "e")(t.Context(), dir)
		m.Platform = "plan9/mips"
		return m, err
	})
	mustCreate(t, c, Name("v1.2.3", "a"), refuse)
	var got []string
	for _, e := range c.List("v1.2.3") {
		got = append(got, filepath.Base(e.Dir))
	}
	if diff := cmp.Diff([]string{"v1.2.3-a", "v1.2.3-c", "v1.2.3-b"}, got); diff != "" {
		t.Errorf("unexpected order (-want +got):\n%s", diff)
	}
}

func TestCompressedFileIsWrittenOnce(t *testing.T) {
	e := mustCreate(t, Cache{Dir: t.TempDir()}, "v1.2.3-k", fill("v1.2.3", "hello"))
	broken := errors.New("broken")
	_, err := e.Compressed(t.Context(), func(dst io.Writer, _ io.Reader) error {
		fmt.Fprint(dst, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want the one of the compressor", err)
	}
	calls := 0
	upper := func(dst io.Writer, src io.Reader) error {
		calls++
		data, err := io.ReadAll(src)
		fmt.Fprint(dst, strings.ToUpper(string(data)))
		return err
	}
	for range 2 {
		path, err := e.Compressed(t.Context(), upper)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "HELLO" {
			t.Errorf("the compressed file holds %q (%v)", data, err)
		}
	}
	if calls != 1 {
		t.Errorf("compressed %d times, want once", calls)
	}
}

func TestDefaultFollowsTheUsersCacheDirectory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/somewhere")
	c, err := Default()
	if err != nil || c.Dir != "/somewhere/drover/kube" {
		t.Errorf("got %q (%v)", c.Dir, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Default(); err == nil || !strings.Contains(err.Error(), "set XDG_CACHE_HOME") {
		t.Errorf("got error %v, want one that says what to set", err)
	}
}

func TestCacheOfAnotherBinaryNamesItsFilesAfterIt(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Binary: "source-controller"}
	e := mustCreate(t, c, "v1.2.3-k", func(_ context.Context, dir string) (Manifest, error) {
		return Manifest{Version: "v1.2.3"}, os.WriteFile(filepath.Join(dir, "source-controller"), []byte("hello"), 0o600)
	})
	if got := filepath.Base(e.Binary()); got != "source-controller" {
		t.Errorf("the binary is called %q", got)
	}
	if _, err := os.Stat(filepath.Join(e.Dir, "source-controller.json")); err != nil {
		t.Error(err)
	}
	if found := c.List("v1.2.3"); len(found) != 1 {
		t.Errorf("found %v, want one entry", found)
	}
	if found := (Cache{Dir: c.Dir}).List("v1.2.3"); len(found) != 0 {
		t.Errorf("a cache of Kubernetes lists %v", found)
	}
}
