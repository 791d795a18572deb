package main

import (
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

// fluxSource is a directory with a fake kube/flux, whose controllers are local modules.
func fluxSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mod := "module example.com/flux\n\ngo 1.26.0\n"
	for _, c := range flux.Controllers() {
		mod += "\nrequire " + c.Module + " " + c.Version + "\nreplace " + c.Module + " => ./" + c.Name + "\n"
		kubefake.Write(t, filepath.Join(dir, "flux", c.Name, "go.mod"), "module "+c.Module+"\n\ngo 1.26.0\n")
		kubefake.Write(t, filepath.Join(dir, "flux", c.Name, "main.go"), "package main\n\nfunc main() {}\n")
	}
	kubefake.Write(t, filepath.Join(dir, "flux", "go.mod"), mod)
	return dir
}

func TestFluxControllersAreBuiltOnce(t *testing.T) {
	useCache(t)
	source := fluxSource(t)
	t.Setenv(flux.EnvDir, "")
	build := func() flux.Programs {
		if err := run(t.Context(), []string{"--source", source, "flux"}, io.Discard); err != nil {
			t.Fatal(err)
		}
		programs, err := flux.Find()
		if err != nil {
			t.Fatal(err)
		}
		return programs
	}
	first := build()
	for _, c := range flux.Controllers() {
		if err := c.Check(first[c.Name]); err != nil {
			t.Error(err)
		}
	}
	before := mustStat(t, first[flux.Source().Name])
	if again := build(); !os.SameFile(before, mustStat(t, again[flux.Source().Name])) {
		t.Error("unchanged source was compiled again")
	}
	kubefake.Write(t, filepath.Join(source, "flux", flux.Source().Name, "more.go"), "package main\n")
	build()
	if store, err := cache.For(flux.Source().Name); err != nil || len(store.List(flux.Source().Version)) != 2 {
		t.Errorf("a change of the source made no new entry (%v)", err)
	}
}

func TestFluxControllersAreCopiedIntoADirectory(t *testing.T) {
	useCache(t)
	source, dir := fluxSource(t), filepath.Join(t.TempDir(), "linux_arm64", flux.Dir)
	for _, c := range flux.Controllers() {
		kubefake.Write(t, filepath.Join(dir, c.Name), "a program of an earlier release")
	}
	args := []string{"--source", source, "--platform", "linux/arm64", "--flux-dir", dir, "flux"}
	if err := run(t.Context(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, c := range flux.Controllers() {
		path := filepath.Join(dir, c.Name)
		if err := c.Check(path); err != nil {
			t.Error(err)
		}
		if mode := mustStat(t, path).Mode().Perm(); mode != 0o755 {
			t.Errorf("the mode of %s is %v, want 0755", c.Name, mode)
		}
		if got := machineOf(t, path); got != elf.EM_AARCH64 {
			t.Errorf("%s is for %s", c.Name, got)
		}
	}
}

// machineOf returns the architecture of a program.
func machineOf(t *testing.T, path string) elf.Machine {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Machine
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestFluxBuildRejectsAnotherVersion(t *testing.T) {
	useCache(t)
	source := fluxSource(t)
	mod := filepath.Join(source, "flux", "go.mod")
	data, err := os.ReadFile(mod)
	if err != nil {
		t.Fatal(err)
	}
	kubefake.Write(t, mod, strings.ReplaceAll(string(data), flux.Source().Version, "v1.0.0"))
	err = run(t.Context(), []string{"--source", source, "flux"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), flux.Source().Version+" is required") {
		t.Errorf("got %v", err)
	}
}
