package kube_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/build"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/payload"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

// built returns a cache with a fake Kubernetes v1.36.3.
func built(t *testing.T) (cache.Cache, cache.Entry) {
	t.Helper()
	c := cache.Cache{Dir: t.TempDir()}
	b := build.Builder{Source: kubefake.Source(t), Cache: c}
	e, err := b.Build(t.Context(), build.Release{Version: "v1.36.3", ModFile: "go.mod"})
	if err != nil {
		t.Fatal(err)
	}
	return c, e
}

// carrying returns an executable with the entry inside.
func carrying(t *testing.T, e cache.Entry) string {
	t.Helper()
	executable := bare(t)
	compressed, err := e.Compressed(t.Context(), payload.Compress)
	if err != nil {
		t.Fatal(err)
	}
	h := payload.Header{Version: e.Version, Key: e.Key, SHA256: e.SHA256, Size: e.Size}
	if err := payload.Attach(executable, compressed, h); err != nil {
		t.Fatal(err)
	}
	return executable
}

func bare(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "drover")
	kubefake.Write(t, path, "program")
	return path
}

func mustFind(t *testing.T, opts kube.FindOptions) kube.Binary {
	t.Helper()
	b, err := kube.Find(opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFindInTheCache(t *testing.T) {
	c, e := built(t)
	b := mustFind(t, kube.FindOptions{Cache: c, Executable: bare(t)})
	if want := (kube.Binary{Path: e.Binary(), Version: "v1.36.3"}); b != want {
		t.Errorf("found %+v, want %+v", b, want)
	}
}

func TestFindWithoutVersionReturnsTheNewest(t *testing.T) {
	c := cache.Cache{Dir: t.TempDir()}
	b := build.Builder{Source: kubefake.Source(t), Cache: c}
	executable := bare(t)
	for _, r := range []build.Release{{Version: "v1.35.4", ModFile: "v1.35.mod"}, {Version: "v1.36.3", ModFile: "go.mod"}} {
		if _, err := b.Build(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if found := mustFind(t, kube.FindOptions{Cache: c, Executable: executable}); found.Version != r.Version {
			t.Errorf("found %s after %s was built", found.Version, r.Version)
		}
	}
	_, err := kube.Find(kube.FindOptions{Cache: c, Executable: executable, Version: "v1.34.0"})
	var missing *kube.MissingError
	if !errors.As(err, &missing) || missing.Version != "v1.34.0" {
		t.Errorf("got error %v, want a MissingError: a version that is asked for has no substitute", err)
	}
}

func TestFindUnpacksThePayloadOnce(t *testing.T) {
	_, e := built(t)
	opts := kube.FindOptions{Cache: cache.Cache{Dir: t.TempDir()}, Executable: carrying(t, e)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := kube.Find(opts); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b := mustFind(t, opts)
	if n := len(opts.Cache.List("v1.36.3")); n != 1 {
		t.Errorf("%d entries in the cache, want 1", n)
	}
	if got, err := b.Probe(t.Context()); err != nil || got != "v1.36.3" {
		t.Errorf("unpacked binary: got version %q, error %v, want v1.36.3", got, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(b.Path), "kubectl")); err != nil {
		t.Errorf("the programs are not linked: %v", err)
	}
}

func TestFindReplacesDamagedEntries(t *testing.T) {
	_, e := built(t)
	opts := kube.FindOptions{Cache: cache.Cache{Dir: t.TempDir()}, Executable: carrying(t, e)}
	if err := os.Truncate(mustFind(t, opts).Path, 10); err != nil {
		t.Fatal(err)
	}
	if got, err := mustFind(t, opts).Probe(t.Context()); err != nil || got != "v1.36.3" {
		t.Errorf("binary: got version %q, error %v, want v1.36.3", got, err)
	}
}

func TestFindPrefersAnEntryWithThePayloadDigest(t *testing.T) {
	c, e := built(t)
	b := mustFind(t, kube.FindOptions{Cache: c, Executable: carrying(t, e)})
	if b.Path != e.Binary() {
		t.Errorf("found %s, want what was built: %s", b.Path, e.Binary())
	}
}

func TestFindPrefersThePayloadOverAnotherBuildOfTheSameVersion(t *testing.T) {
	_, e := built(t)
	c := cache.Cache{Dir: t.TempDir()}
	other, err := c.Create(t.Context(), cache.Request{
		Name: cache.Name("v1.36.3", "other"),
		Fill: func(_ context.Context, dir string) (cache.Manifest, error) {
			return cache.Manifest{Version: "v1.36.3"}, os.WriteFile(filepath.Join(dir, "kube"), []byte("other"), 0o600)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if b := mustFind(t, kube.FindOptions{Cache: c, Executable: carrying(t, e)}); b.Path == other.Binary() {
		t.Errorf("found %s, want what the executable carries", b.Path)
	}
}

func TestFindRejectsDamagedPayload(t *testing.T) {
	_, e := built(t)
	executable := carrying(t, e)
	data, err := os.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	data[len("program")+1000] ^= 0xff
	kubefake.Write(t, executable, string(data))
	c := cache.Cache{Dir: t.TempDir()}
	_, err = kube.Find(kube.FindOptions{Cache: c, Executable: executable})
	var corrupt *payload.CorruptError
	if !errors.As(err, &corrupt) || corrupt.File != executable {
		t.Errorf("got error %v, want a CorruptError that names the executable", err)
	}
	if n := len(c.List("v1.36.3")); n != 0 {
		t.Errorf("%d entries in the cache, want none", n)
	}
}

func TestFindInADirectory(t *testing.T) {
	_, e := built(t)
	without := copyOf(t, e)
	if err := os.Remove(filepath.Join(without, "kube.json")); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"with a manifest": copyOf(t, e), "without one": without} {
		t.Run(name, func(t *testing.T) {
			b := mustFind(t, kube.FindOptions{Dir: dir})
			if want := (kube.Binary{Path: filepath.Join(dir, "kube"), Version: "v1.36.3"}); b != want {
				t.Errorf("found %+v, want %+v", b, want)
			}
			_, err := kube.Find(kube.FindOptions{Dir: dir, Version: "v1.35.4"})
			var wrong *kube.VersionError
			if !errors.As(err, &wrong) || wrong.Got != "v1.36.3" || wrong.Want != "v1.35.4" {
				t.Errorf("got error %v, want a VersionError", err)
			}
		})
	}
	t.Run("named by the environment", func(t *testing.T) {
		t.Setenv(kube.EnvDir, without)
		if b := mustFind(t, kube.FindOptions{}); filepath.Dir(b.Path) != without {
			t.Errorf("found %s, want the one in %s", b.Path, without)
		}
	})
}

func copyOf(t *testing.T, e cache.Entry) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(e.Dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFindRejectsDirectoryWithAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kube"), []byte("#!/bin/sh\necho '{}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := kube.Find(kube.FindOptions{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "not a Kubernetes binary built by Drover") {
		t.Errorf("got error %v, want one that says what the file is not", err)
	}
}

func TestFindErrorListsLocationsAndRemedy(t *testing.T) {
	c, e := built(t)
	executable, empty := carrying(t, e), t.TempDir()
	tests := []struct {
		name string
		opts kube.FindOptions
		want []string
	}{
		{
			name: "another version than the payload and the cache have",
			opts: kube.FindOptions{Version: "v1.35.4", Cache: c, Executable: executable},
			want: []string{executable, filepath.Join(c.Dir, "v1.35.4-*"), "make kube KUBE_VERSIONS=v1.35.4", "--kube-dir"},
		},
		{
			name: "an empty directory is not followed by a look elsewhere",
			opts: kube.FindOptions{Dir: empty, Cache: c, Executable: executable},
			want: []string{filepath.Join(empty, "kube"), "make kube"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := kube.Find(tt.opts)
			var missing *kube.MissingError
			if !errors.As(err, &missing) {
				t.Fatalf("got error %v, want a MissingError", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in the message:\n%v", want, err)
				}
			}
		})
	}
}

func TestCommandRunsTheProgramByName(t *testing.T) {
	_, e := built(t)
	var out bytes.Buffer
	cmd := kube.Binary{Path: e.Binary()}.Command(t.Context(), "kube-apiserver", "--flag", "value")
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != "[kube-apiserver --flag value]" {
		t.Errorf("the program saw %s", got)
	}
}
