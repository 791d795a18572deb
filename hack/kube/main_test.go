package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

// useCache gives the test a cache of its own, apart from the go command's.
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

func TestRunBuildsWhatIsAskedFor(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"the default version", nil, []string{"v1.36.3-"}},
		{"a minor", []string{"--version", "1.35"}, []string{"v1.35.4-"}},
		{"a list", []string{"--version", "v1.35.4, 1.36"}, []string{"v1.35.4-", "v1.36.3-"}},
		{"everything", []string{"--all"}, []string{"v1.36.3-", "v1.35.4-"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := useCache(t)
			var out bytes.Buffer
			args := append([]string{"--source", kubefake.Source(t), "--print-dir"}, tt.args...)
			if err := run(t.Context(), args, &out); err != nil {
				t.Fatal(err)
			}
			dirs := strings.Fields(out.String())
			if len(dirs) != len(tt.want) {
				t.Fatalf("printed %q, want %d directories", dirs, len(tt.want))
			}
			for i, dir := range dirs {
				if !strings.HasPrefix(dir, filepath.Join(c.Dir, tt.want[i])) {
					t.Errorf("printed %s, want one of %s", dir, tt.want[i])
				}
			}
		})
	}
}

func TestPayloadIsFoundInTheExecutable(t *testing.T) {
	useCache(t)
	executable := filepath.Join(t.TempDir(), "drover")
	kubefake.Write(t, executable, "program")
	args := []string{"payload", "--source", kubefake.Source(t), "--into", executable}
	if err := run(t.Context(), args, os.Stdout); err != nil {
		t.Fatal(err)
	}
	elsewhere := cache.Cache{Dir: t.TempDir()}
	b, err := kube.Find(kube.FindOptions{Executable: executable, Cache: elsewhere, Version: "v1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Probe(t.Context()); err != nil || got != "v1.36.3" {
		t.Errorf("the binary says %q (%v)", got, err)
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	useCache(t)
	source := kubefake.Source(t)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"outside a checkout", []string{"--source", filepath.Join(source, "missing")}, "run this in the root of the checkout"},
		{"an unknown version", []string{"--source", source, "--version", "1.20"}, "choose one of v1.36.3, v1.35.4"},
		{"a payload without a target", []string{"payload", "--source", source}, "needs --into FILE"},
		{"two versions in one payload", []string{"payload", "--source", source, "--into", "x", "--version", "1.35,1.36"}, "one version, not 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := run(t.Context(), tt.args, os.Stdout)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}
