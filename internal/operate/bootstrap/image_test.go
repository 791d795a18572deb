package bootstrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
)

func TestImageIsNamedAfterTheProgram(t *testing.T) {
	program, err := os.Executable()
	must(t, err)
	image, err := bootstrap.Image(program)
	must(t, err)
	data, err := os.ReadFile(program)
	must(t, err)
	other := filepath.Join(t.TempDir(), "drover")
	must(t, os.WriteFile(other, append(data, 0), 0o600))
	changed, err := bootstrap.Image(other)
	must(t, err)
	if image.Reference == changed.Reference {
		t.Errorf("two programs are both %s", image.Reference)
	}
	if again, err := bootstrap.Image(program); err != nil || again.Reference != image.Reference {
		t.Errorf("the same program is %s, then %s (%v)", image.Reference, again.Reference, err)
	}
}

func TestImagesOfFluxControllersAreNamedAfterThem(t *testing.T) {
	image, err := bootstrap.FluxImage(flux.Kustomize(), program(t))
	must(t, err)
	if !strings.HasPrefix(image.Reference, "drover.local/kustomize-controller:") {
		t.Errorf("the image is called %s", image.Reference)
	}
}

// program builds a static executable, which a test with the race detector is not.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "drover")
	must(t, os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600))
	cmd := exec.Command("go", "build", "-o", binary, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building a program: %v\n%s", err, out)
	}
	return binary
}

func TestDeliverWritesTheImage(t *testing.T) {
	image, err := bootstrap.Image(program(t))
	must(t, err)
	h := metal.Home{Dir: t.TempDir()}
	must(t, bootstrap.Deliver(t.Context(), h, image))
	files, err := filepath.Glob(filepath.Join(h.LocalDir(), "images", "*.tar"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	tag, err := name.NewTag(image.Reference)
	must(t, err)
	if _, err := tarball.ImageFromPath(files[0], &tag); err != nil {
		t.Error(err)
	}
}
