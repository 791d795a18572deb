package bundle

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
)

// files lists the names in a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestArchiveTarget(t *testing.T) {
	broken := errors.New("connection reset")
	for _, tc := range []struct {
		name   string
		dryRun bool
		failed error
		want   []string
	}{
		{"a failed copy keeps the unfinished archive", false, broken, []string{"site.tar.partial"}},
		{"a dry run writes nothing", true, nil, nil},
		{"a failed dry run writes nothing", true, broken, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			o := &copyOptions{dryRun: tc.dryRun}
			_, finish, err := o.target(filepath.Join(dir, "site.tar"))
			if err != nil {
				t.Fatal(err)
			}
			if err := finish(tc.failed); !errors.Is(err, tc.failed) || (err == nil) != (tc.failed == nil) {
				t.Errorf("finish returned %v", err)
			}
			if got := files(t, dir); !slices.Equal(got, tc.want) {
				t.Errorf("files are %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExistingArchiveIsNotOverwritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.tar")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{false, true} {
		if _, _, err := (&copyOptions{dryRun: dryRun}).target(file); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("dry run %t: %v", dryRun, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the file contains %q, %v", text, err)
	}
}

func TestSourceErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.tar")
	for _, tc := range []struct {
		name    string
		from    string
		options copyOptions
		want    string
	}{
		{"missing archive", missing, copyOptions{}, "opening the archive: "},
		{"no bundle selected", "oci://r.example.com", copyOptions{}, "pass a bundle, or --kube-version"},
		{"two bundles selected", "oci://r.example.com", copyOptions{bundle: "v1-36-1", kubernetes: "1.36"}, "not both"},
		{"no plane", ownPlane, copyOptions{bundle: "v1-36-1", registries: registries{home: missing}}, "no plane in this home"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, _, _, err := tc.options.source(tc.from); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestOpenPlaneThatIsStopped(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"home.json": `{"format":1}`, "run/state.json": `{"components":[{"name":"registry","state":"ready"}]}`, "config.json": `{"registryPort":5007}`,
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (&registries{home: home}).open(ownPlane); !errors.Is(err, plane.ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}

func TestWriteCharts(t *testing.T) {
	built := &pack.Built{
		Charts:   []*registry.Chart{{Name: "hello", Version: "1.0.0"}, {Name: "base", Version: "0.3.0"}},
		Archives: [][]byte{[]byte("one"), []byte("two")},
	}
	dir := filepath.Join(t.TempDir(), "new", "out")
	got, err := (&buildOptions{charts: dir}).writeCharts(built)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(dir, "hello-1.0.0.tgz"), filepath.Join(dir, "base-0.3.0.tgz")}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, file := range got {
		if text, err := os.ReadFile(file); err != nil || !bytes.Equal(text, built.Archives[i]) {
			t.Errorf("%s contains %q, %v", file, text, err)
		}
	}
	if got, err := (&buildOptions{}).writeCharts(built); err != nil || !slices.Equal(got, []string{"", ""}) {
		t.Errorf("without --charts: %q, %v", got, err)
	}
}

func TestSignedBundleIsWritten(t *testing.T) {
	b := &packagesv1.PackageBundle{}
	b.Name = "v1-36-1"
	file := filepath.Join(t.TempDir(), "signed.yaml")
	for _, tc := range []struct{ to, want string }{
		{"-", "kind: PackageBundle"}, {file, "Signed v1-36-1 in " + file + "\n"},
	} {
		var out bytes.Buffer
		if err := (&signOptions{}).write(&ui.IO{Out: &out}, b, tc.to); err != nil || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: printed %q, %v", tc.to, out.String(), err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "name: v1-36-1") {
		t.Errorf("the file contains %q, %v", text, err)
	}
	err := (&signOptions{}).write(&ui.IO{Out: &bytes.Buffer{}}, b, filepath.Join(file, "below-a-file"))
	if err == nil || !strings.HasPrefix(err.Error(), "writing the bundle: ") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
