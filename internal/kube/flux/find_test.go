package flux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/kube/cache"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

// envPrint makes this test print what Find returns, as drover of a release would.
const envPrint = "DROVER_TEST_PRINT_FLUX"

func TestMain(m *testing.M) {
	if os.Getenv(envPrint) == "" {
		os.Exit(m.Run())
	}
	programs, err := Find()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(programs[Source().Name])
}

func TestVersionsMatchTheModuleFile(t *testing.T) {
	data, err := os.ReadFile("../../../kube/flux/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Controllers() {
		pin := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(c.Module) + ` (v\S+)`).FindSubmatch(data)
		if len(pin) != 2 || string(pin[1]) != c.Version {
			t.Errorf("the module file pins %q, want %s", pin, c)
		}
	}
}

// store puts a program into the cache of the test.
func store(t *testing.T, c Controller, version string) string {
	t.Helper()
	s, err := cache.For(c.Name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Create(t.Context(), cache.Request{
		Name: cache.Name(version, "k"),
		Fill: func(_ context.Context, dir string) (cache.Manifest, error) {
			return cache.Manifest{Version: version}, os.WriteFile(filepath.Join(dir, c.Name), []byte("program"), 0o600)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.Binary()
}

func TestFindReturnsTheProgramsOfTheCache(t *testing.T) {
	t.Setenv(EnvDir, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source, kustomize := store(t, Source(), Source().Version), store(t, Kustomize(), Kustomize().Version)
	got, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if got[Source().Name] != source || got[Kustomize().Name] != kustomize {
		t.Errorf("got %v, want %s and %s", got, source, kustomize)
	}
	cmd := got.Command(t.Context(), Source(), "--help")
	if cmd.Path != source || len(cmd.Args) != 2 {
		t.Errorf("the command is %v", cmd)
	}
}

func TestFindNamesTheMissingProgram(t *testing.T) {
	tests := []struct {
		name  string
		files func(t *testing.T)
		want  string
	}{
		{"an empty cache", func(*testing.T) {}, Kustomize().String()},
		{"one of two programs", func(t *testing.T) { store(t, Kustomize(), Kustomize().Version) }, Source().String()},
		{"another version", func(t *testing.T) {
			store(t, Kustomize(), Kustomize().Version)
			store(t, Source(), "v1.0.0")
		}, Source().String()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(EnvDir, "")
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			tt.files(t)
			_, err := Find()
			var missing *MissingError
			if !errors.As(err, &missing) || missing.Controller.String() != tt.want || !strings.Contains(err.Error(), "make flux") ||
				!strings.Contains(err.Error(), `directory "flux" of a release`) {
				t.Errorf("got %v, want a missing %s", err, tt.want)
			}
		})
	}
}

func TestFindChecksTheProgramsOfADirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvDir, dir)
	_, err := Find()
	var missing *MissingError
	if !errors.As(err, &missing) || !slices.Equal(missing.Looked, []string{filepath.Join(dir, Kustomize().Name)}) {
		t.Errorf("got %v for an empty directory", err)
	}
	// The test itself is a Go program of another module.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, Kustomize().Name)); err != nil {
		t.Fatal(err)
	}
	_, err = Find()
	var other *VersionError
	if !errors.As(err, &other) || !strings.Contains(err.Error(), "github.com/fluxcd/kustomize-controller v1.9.5 is required") {
		t.Errorf("got %v for another program", err)
	}
}

// controllers are directories with compiled programs: the required ones, and an outdated
// source-controller.
type controllers struct {
	required, outdated string
}

// compile must be called before a test sets XDG_CACHE_HOME, which also has the build cache.
func compile(t *testing.T) controllers {
	t.Helper()
	built := controllers{required: t.TempDir(), outdated: t.TempDir()}
	for _, c := range Controllers() {
		kubefake.Program(t, filepath.Join(built.required, c.Name), c.Module, c.Version)
	}
	kubefake.Program(t, filepath.Join(built.outdated, Source().Name), Source().Module, "v1.0.0")
	return built
}

// link makes a file with the content of another one, and the directories above it.
func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(from, to); err != nil {
		t.Fatal(err)
	}
}

// newRelease returns a directory with drover in opt, a symbolic link to it in bin, and an empty
// cache.
func newRelease(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kubefake.Write(t, filepath.Join(root, "opt", "drover"), "drover")
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../opt/drover", filepath.Join(root, "bin", "drover")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	return root
}

func TestFindSearchesTheReleaseBeforeTheCache(t *testing.T) {
	built := compile(t)
	k, s := Kustomize().Name, Source().Name
	released := Programs{k: "opt/flux/" + k, s: "opt/flux/" + s}
	cached := Programs{
		k: "cache/drover/" + k + "/" + cache.Name(Kustomize().Version, "k") + "/" + k,
		s: "cache/drover/" + s + "/" + cache.Name(Source().Version, "k") + "/" + s,
	}
	tests := []struct {
		name       string
		files      []string // copies of the required programs
		dir        string   // named by the user
		executable string
		want       Programs
	}{
		{"a release", []string{"opt/flux/" + k, "opt/flux/" + s}, "", "opt/drover", released},
		{"a link to drover in a release", []string{"opt/flux/" + k, "opt/flux/" + s}, "", "bin/drover", released},
		{"a release whose drover was removed", []string{"opt/flux/" + k, "opt/flux/" + s}, "", "opt/removed", released},
		{"half a release", []string{"opt/flux/" + k}, "", "opt/drover", Programs{k: released[k], s: cached[s]}},
		{"drover alone", nil, "", "opt/drover", cached},
		{"controllers beside a link only", []string{"bin/flux/" + k, "bin/flux/" + s}, "", "bin/drover", cached},
		{"a release and a directory of the user", []string{"opt/flux/" + k, "mine/" + k, "mine/" + s}, "mine", "opt/drover", Programs{k: "mine/" + k, s: "mine/" + s}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := newRelease(t)
			store(t, Kustomize(), Kustomize().Version)
			store(t, Source(), Source().Version)
			for _, f := range tt.files {
				link(t, filepath.Join(built.required, filepath.Base(f)), filepath.Join(root, f))
			}
			dir := tt.dir
			if dir != "" {
				dir = filepath.Join(root, dir)
			}
			got, err := find(dir, filepath.Join(root, tt.executable))
			if err != nil {
				t.Fatal(err)
			}
			for name, path := range got {
				got[name] = strings.TrimPrefix(path, root+"/")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindRejectsAnotherVersionInARelease(t *testing.T) {
	built := compile(t)
	root := newRelease(t)
	store(t, Kustomize(), Kustomize().Version)
	store(t, Source(), Source().Version)
	outdated := filepath.Join(root, "opt", Dir, Source().Name)
	link(t, filepath.Join(built.outdated, Source().Name), outdated)
	_, err := find("", filepath.Join(root, "bin", "drover"))
	var version *VersionError
	if !errors.As(err, &version) || version.Path != outdated || !strings.HasSuffix(version.Got, " v1.0.0") {
		t.Errorf("got %v, want a VersionError of %s", err, outdated)
	}
	if err != nil && !strings.Contains(err.Error(), "same release as drover") {
		t.Errorf("the error doesn't help users of releases: %v", err)
	}
}

func TestFindIgnoresTheCommandLineOfFluxBesideDrover(t *testing.T) {
	root := newRelease(t)
	kubefake.Write(t, filepath.Join(root, "opt", Dir), "the command line of Flux")
	store(t, Source(), Source().Version)
	want := store(t, Kustomize(), Kustomize().Version)
	if got, err := find("", filepath.Join(root, "opt", "drover")); err != nil || got[Kustomize().Name] != want {
		t.Errorf("got %v (%v), want %s", got, err, want)
	}
}

func TestMissingErrorNamesEverySearchedLocation(t *testing.T) {
	root := newRelease(t)
	_, err := find("", filepath.Join(root, "bin", "drover"))
	var missing *MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want a MissingError", err)
	}
	name := Kustomize().Name
	want := []string{
		filepath.Join(root, "opt", Dir, name),
		filepath.Join(root, "cache", "drover", name, cache.Name(Kustomize().Version, "*")),
	}
	if diff := cmp.Diff(want, missing.Looked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindStartsAtTheRunningExecutable(t *testing.T) {
	built := compile(t)
	root := newRelease(t)
	t.Setenv(EnvDir, "")
	for _, c := range Controllers() {
		link(t, filepath.Join(built.required, c.Name), filepath.Join(root, "opt", Dir, c.Name))
	}
	// This test takes the place of drover.
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "opt", "new"), self, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "opt", "new"), filepath.Join(root, "opt", "drover")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "drover"))
	cmd.Env = append(os.Environ(), envPrint+"=1")
	out, err := cmd.CombinedOutput()
	want := filepath.Join(root, "opt", Dir, Source().Name)
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func TestFindRejectsAReleaseOfSomebodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	built := compile(t)
	root := newRelease(t)
	dir := filepath.Join(root, "opt", Dir)
	for _, c := range Controllers() {
		link(t, filepath.Join(built.required, c.Name), filepath.Join(dir, c.Name))
	}
	const nobody = 65534
	if err := os.Chown(dir, nobody, -1); err != nil {
		t.Fatal(err)
	}
	executable := filepath.Join(root, "opt", "drover")
	_, err := find("", executable)
	if owner, ok := errors.AsType[*OwnerError](err); !ok || owner.Dir != dir || owner.Owner != nobody {
		t.Errorf("got %v, want an OwnerError of %s", err, dir)
	}
	if err := os.Chown(executable, nobody, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := find("", executable); err != nil {
		t.Errorf("all files belong to one user: %v", err)
	}
}
