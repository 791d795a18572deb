package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is a drover binary and its version.
type program struct{ path, version string }

// checkout is the root of the repository, seen from this directory.
const checkout = "../.."

// currentProgram is built from the checkout as it is.
func currentProgram(t *testing.T) program {
	t.Helper()
	return buildProgram(t, checkout, output(t, "hack/version.sh"))
}

// olderProgram is built from the commit that started the work on this release, or on the one before
// if that was the last commit. Most of its packages are the same, and hence compiled already.
func olderProgram(t *testing.T) program {
	t.Helper()
	// Reading .git itself would make cached results of tests stale.
	cmd := exec.Command("git", "log", "-1", "--format=%H", "HEAD~1", "--", "internal/base/version/VERSION")
	cmd.Dir = checkout
	out, err := cmd.Output()
	commit := strings.TrimSpace(string(out))
	if err != nil || commit == "" {
		t.Log("no older commit in this checkout: the same code stands in for it; git fetch --unshallow brings the history")
		return buildProgram(t, checkout, "v0.0.1")
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	output(t, "git", "archive", "--output", archive, commit)
	output(t, "tar", "-xf", archive, "-C", dir)
	return buildProgram(t, dir, output(t, "hack/version.sh", commit))
}

// buildProgram builds drover with the flags of the Makefile, which share the build cache with
// everything else. The go command caches what it runs, but not what it builds: the older program is
// linked once.
func buildProgram(t *testing.T, dir, v string) program {
	t.Helper()
	p := program{path: filepath.Join(t.TempDir(), "drover"), version: v}
	cmd := exec.Command("go", "run", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-exec=cp",
		"-ldflags", "-s -w -X github.com/drover-dev/drover/internal/base/version.version="+v, "./cmd/drover", p.path)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building drover %s: %v\n%s", v, err, out)
	}
	return p
}

// output runs a command in the checkout and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = checkout, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}
