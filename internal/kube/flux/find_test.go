package flux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kube/cache"
)

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
			if !errors.As(err, &missing) || missing.Controller.String() != tt.want || !strings.Contains(err.Error(), "make flux") {
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
	if !errors.As(err, &missing) || missing.Looked != filepath.Join(dir, Kustomize().Name) {
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
