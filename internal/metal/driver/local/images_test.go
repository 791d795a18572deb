package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// names returns the files in the directory of images.
func delivery(t *testing.T, home string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(home, imagesDir))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func written(content string) func(string) error {
	return func(file string) error { return os.WriteFile(file, []byte(content), 0o600) }
}

func TestArchiveIsWrittenOnce(t *testing.T) {
	home := t.TempDir()
	if err := Deliver(t.Context(), home, "a", written("first")); err != nil {
		t.Fatal(err)
	}
	never := func(string) error { return errors.New("made again") }
	if err := Deliver(t.Context(), home, "a", never); err != nil {
		t.Error(err)
	}
	if err := Deliver(t.Context(), home, "b", never); err == nil || !strings.Contains(err.Error(), "made again") {
		t.Errorf("a failure to make an archive: %v", err)
	}
	if diff := cmp.Diff([]string{"a.tar"}, delivery(t, home)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestPruneKeepsTheLatestArchives(t *testing.T) {
	home := t.TempDir()
	past := time.Now().Add(-24 * time.Hour)
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		if err := Deliver(t.Context(), home, name, written(name)); err != nil {
			t.Fatal(err)
		}
		then := past.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(home, imagesDir, name+".tar"), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := Deliver(t.Context(), home, "source-controller-a", written("x")); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(home, imagesDir, ".part-1")
	if err := errors.Join(written("half")(unfinished), os.Chtimes(unfinished, past, past)); err != nil {
		t.Fatal(err)
	}
	if err := Deliver(t.Context(), home, "b", nil); err != nil { // It is used again.
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b.tar", "c.tar", "d.tar", "e.tar", "source-controller-a.tar"}, delivery(t, home)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// saved writes an image with arbitrary content.
func saved(t *testing.T, reference string) func(string) error {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH // containerd rejects other platforms.
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return func(file string) error { return tarball.WriteToFile(file, tag, img) }
}

func TestDeliveredImagesArePreloaded(t *testing.T) {
	f := newFixture(t)
	early := f.device("early", greeting)
	f.boot(early)
	has := func(id, reference string) {
		t.Helper()
		if got, _ := f.try(id, "ctr -n k8s.io images ls -q name=="+reference+" 2>/dev/null"); got != reference {
			t.Errorf("%s has image %q, want %q", id, got, reference)
		}
	}
	for _, version := range []string{"v1", "v2"} {
		if err := Deliver(t.Context(), f.home, version, saved(t, "drover.local/probe:"+version)); err != nil {
			t.Fatal(err)
		}
		has(early.ID, "drover.local/probe:"+version)
	}

	t.Log("a machine that comes later imports all of them as it boots")
	late := f.device("late", greeting)
	f.boot(late)
	if err := awaitImport(t.Context(), f.home, "v1.tar"); err != nil {
		t.Fatal(err)
	}
	if err := awaitImport(t.Context(), f.home, "v2.tar"); err != nil {
		t.Fatal(err)
	}
	has(late.ID, "drover.local/probe:v1")
	has(late.ID, "drover.local/probe:v2")

	t.Log("nothing is imported twice, and a machine can't change what others get")
	for _, tt := range []struct{ line, want string }{
		{"touch /usr/lib/drover/images/x 2>/dev/null; echo $?", "1"},
		{"ls /var/lib/containerd/drover-images | tr '\\n' ' '", "v1.tar v2.tar"},
	} {
		if got, _ := f.try(late.ID, tt.line); strings.TrimSpace(got) != tt.want {
			t.Errorf("%q printed %q, want %q", tt.line, got, tt.want)
		}
	}
	if n := strings.Count(f.console(early.ID), "imported v1.tar"); n != 1 {
		t.Errorf("v1 was imported %d times", n)
	}
}
