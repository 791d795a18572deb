package build

import (
	"context"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

func newBuilder(t *testing.T) Builder {
	t.Helper()
	return Builder{Source: kubefake.Source(t), Cache: cache.Cache{Dir: t.TempDir()}}
}

// report makes the builder report to a Progress, and returns it.
func (b *Builder) report() *Progress {
	p := NewProgress(ProgressOptions{Out: io.Discard})
	b.Task = p.Task("it")
	return p
}

func mustRelease(t *testing.T, b Builder, wanted string) Release {
	t.Helper()
	releases, err := b.Releases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Select(releases, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustBuild(t *testing.T, b Builder, wanted string) cache.Entry {
	t.Helper()
	e, err := b.Build(t.Context(), mustRelease(t, b, wanted))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBuildLinksThePinnedVersion(t *testing.T) {
	b := newBuilder(t)
	for wanted, want := range map[string]string{"": "v1.36.3", "1.35": "v1.35.4"} {
		e := mustBuild(t, b, wanted)
		got, err := kube.Binary{Path: e.Binary()}.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got != want || e.Version != want {
			t.Errorf("asked for %q: the binary says %s, its manifest %s, want %s", wanted, got, e.Version, want)
		}
	}
}

func TestBuildForAnotherPlatform(t *testing.T) {
	b := newBuilder(t)
	here := mustBuild(t, b, "")
	b.Platform = "linux/arm64"
	there := mustBuild(t, b, "")
	if here.Dir == there.Dir || there.Platform != b.Platform {
		t.Errorf("the entry for %s is %s (%s)", b.Platform, there.Dir, there.Platform)
	}
	f, err := elf.Open(there.Binary())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Errorf("the binary is for %s", f.Machine)
	}
}

func TestBuildLinksEachProgram(t *testing.T) {
	b := newBuilder(t)
	e := mustBuild(t, b, "")
	for _, program := range kube.Programs() {
		if got, err := os.Readlink(filepath.Join(e.Dir, program)); err != nil || got != "kube" {
			t.Errorf("%s links to %q (%v), want kube", program, got, err)
		}
	}
}

func TestBuildIsReproducible(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=true")
	first := newBuilder(t)
	second := newBuilder(t)
	commit(t, second.Source)
	one, two := mustBuild(t, first, ""), mustBuild(t, second, "")
	if diff := cmp.Diff(one.Manifest, two.Manifest); diff != "" {
		t.Errorf("two checkouts in two directories differ (-first +second):\n%s", diff)
	}
}

// commit turns the directory into a Git checkout, whose state the go command would embed.
func commit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "."},
		{"-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=m"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

func TestBuildDoesNothingWhenNothingChanged(t *testing.T) {
	b := newBuilder(t)
	mustBuild(t, b, "")
	p := b.report()
	if err := b.Fetch(t.Context(), mustRelease(t, b, "")); err != nil {
		t.Fatal(err)
	}
	mustBuild(t, b, "")
	if line := p.line(); line != "" || len(p.packages) > 0 {
		t.Errorf("the second build did something: %q, %d packages", line, len(p.packages))
	}
}

func TestKeyFollowsTheInputs(t *testing.T) {
	tests := []struct {
		name    string
		change  func(t *testing.T, b Builder)
		changes bool
	}{
		{"a source file", edit("main.go", "// changed\n"), true},
		{"a source file below", edit("staging/component-base/version/base.go", "// changed\n"), true},
		{"the module file", edit("go.mod", "// changed\n"), true},
		{"the sum file", edit("go.sum", "example.com/x v1.0.0 h1:x\n"), true},
		{"a flag that changes code", setGOFLAGS("-tags=x"), true},
		{"a target of another kind", func(t *testing.T, _ Builder) { t.Setenv("GOAMD64", "v3"); t.Setenv("GOARCH", "amd64") }, true},
		{"the module file of another minor", edit("v1.35.mod", "// changed\n"), false},
		{"a test", edit("main_test.go", "package main\n"), false},
		{"a document", edit("README.md", "changed\n"), false},
		{"a flag that says how to build", setGOFLAGS("-p=1 -v -buildvcs=false"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GOFLAGS", "")
			b := newBuilder(t)
			before := key(t, b)
			tt.change(t, b)
			if changed := key(t, b) != before; changed != tt.changes {
				t.Errorf("key changed: got %v, want %v", changed, tt.changes)
			}
		})
	}
}

func edit(name, text string) func(*testing.T, Builder) {
	return func(t *testing.T, b Builder) {
		t.Helper()
		path := filepath.Join(b.Source, name)
		old, _ := os.ReadFile(path)
		kubefake.Write(t, path, string(old)+text)
	}
}

func setGOFLAGS(flags string) func(*testing.T, Builder) {
	return func(t *testing.T, _ Builder) { t.Setenv("GOFLAGS", flags) }
}

func key(t *testing.T, b Builder) string {
	t.Helper()
	in, err := b.inputs(t.Context(), Release{Version: "v1.36.3", ModFile: "go.mod"})
	if err != nil {
		t.Fatal(err)
	}
	return in.key()
}

func TestBuildersOfTheSameContentBuildOnce(t *testing.T) {
	b := newBuilder(t)
	r := mustRelease(t, b, "")
	var wg sync.WaitGroup
	var compiled, waited atomic.Int32
	for range 4 {
		wg.Go(func() {
			b := b
			p := b.report()
			if _, err := b.Build(t.Context(), r); err != nil {
				t.Error(err)
			}
			switch {
			case len(p.packages) > 0:
				compiled.Add(1)
			case strings.Contains(p.line(), "Waiting for another process to build it"):
				waited.Add(1)
			}
		})
	}
	wg.Wait()
	if compiled.Load() != 1 || waited.Load() == 0 {
		t.Errorf("%d builders compiled and %d waited, want 1 and some", compiled.Load(), waited.Load())
	}
}

func TestFailedBuildReportsTheCauseAndCleansUp(t *testing.T) {
	tests := []struct {
		name string
		with func(t *testing.T, b Builder)
		want string
	}{
		{
			name: "a compile error shows what the compiler said",
			with: edit("main.go", "func broken() { undefinedName() }\n"),
			want: "undefined: undefinedName",
		},
		{
			name: "an unset version is found out",
			with: func(t *testing.T, b Builder) {
				kubefake.Write(t, filepath.Join(b.Source, "staging", "component-base", "version", "base.go"),
					"package version\n\nfunc Get() string { return \"v0.0.0-moved\" }\n")
			},
			want: `is Kubernetes v0.0.0-moved, but v1.36.3 is required`,
		},
		{
			name: "a program that is not Kubernetes is found out",
			with: func(t *testing.T, b Builder) {
				kubefake.Write(t, filepath.Join(b.Source, "main.go"), "package main\n\nfunc main() { panic(\"no such program\") }\n")
			},
			want: "no such program",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder(t)
			r := mustRelease(t, b, "")
			tt.with(t, b)
			_, err := b.Build(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
			wantNoEntries(t, b.Cache)
		})
	}
}

func wantNoEntries(t *testing.T, c cache.Cache) {
	t.Helper()
	files, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			t.Errorf("%s was left in the cache", f.Name())
		}
	}
}

func TestBuildWithoutGoExplainsWhatToInstall(t *testing.T) {
	b := newBuilder(t)
	t.Setenv("PATH", t.TempDir())
	_, err := b.Releases(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install Go 1.26") {
		t.Errorf("got error %v, want one that says to install Go", err)
	}
}

// begun reports whether anything is being built.
func (p *Progress) begun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line() != ""
}

func TestInterruptedBuildCleansUp(t *testing.T) {
	b := newBuilder(t)
	r := mustRelease(t, b, "")
	p := b.report()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for !p.begun() { // the go command takes much longer
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := b.Build(ctx, r)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	wantNoEntries(t, b.Cache)
}
