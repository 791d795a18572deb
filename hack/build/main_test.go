package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

// useCache uses a separate cache for the test.
func useCache(t *testing.T) cache.Cache {
	t.Helper()
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c, err := cache.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// source is a directory with a fake kube/kubernetes.
func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Rename(kubefake.Source(t), filepath.Join(dir, "kubernetes")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRunBuildsSelectedVersions(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"the default version", nil, []string{"v1.36.3"}},
		{"a minor", []string{"--kubernetes", "1.35"}, []string{"v1.35.4"}},
		{"a list", []string{"--kubernetes", "v1.35.4, 1.36"}, []string{"v1.35.4", "v1.36.3"}},
		{"everything", []string{"--kubernetes", "all"}, []string{"v1.35.4", "v1.36.3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := useCache(t)
			args := append([]string{"--source", source(t)}, append(tt.args, "kube")...)
			if err := run(t.Context(), args, io.Discard); err != nil {
				t.Fatal(err)
			}
			var built []string
			for _, version := range []string{"v1.35.4", "v1.36.3"} {
				for range c.List(version) {
					built = append(built, version)
				}
			}
			if !slices.Equal(built, tt.want) {
				t.Errorf("built %v, want %v", built, tt.want)
			}
		})
	}
}

func TestPayloadIsAttachedToTheExecutable(t *testing.T) {
	useCache(t)
	executable := filepath.Join(t.TempDir(), "drover")
	kubefake.Write(t, executable, "program")
	args := []string{"--source", source(t), "--bin", filepath.Dir(executable), "--kubernetes", "1.35", "kube", "payload"}
	if err := run(t.Context(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	elsewhere := cache.Cache{Dir: t.TempDir()}
	b, err := kube.Find(kube.FindOptions{Executable: executable, Cache: elsewhere, Version: "v1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Probe(t.Context()); err != nil || got != "v1.36.3" {
		t.Errorf("the binary reports %q (%v)", got, err)
	}
}

func TestRunRejectsInvalidArguments(t *testing.T) {
	useCache(t)
	kubernetes := source(t)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"a directory outside a checkout", []string{"--source", filepath.Join(kubernetes, "missing"), "kube"}, "run this in the root of the checkout"},
		{"an unknown version", []string{"--source", kubernetes, "--kubernetes", "1.20", "kube"}, "choose one of v1.36.3, v1.35.4"},
		{"an unknown target", []string{"docker"}, `unknown target "docker"`},
		{"no target", nil, "nothing to build"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := run(t.Context(), tt.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestBuildStopsWithItsParent(t *testing.T) {
	parent := exec.Command("sleep", "60")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := whileRunning(t.Context(), parent.Process.Pid)
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("stopped while the parent runs, want it to continue")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Error("still building after the end of the parent")
	}
}
