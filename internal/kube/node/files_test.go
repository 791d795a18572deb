package node

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/kube"
)

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTailReturnsTheLastLines(t *testing.T) {
	for _, tt := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc"}, {"a\nb", 5, "a\nb"}, {"\n\na\n\n", 1, "a"}, {"a", 0, ""},
	} {
		if got := tail(tt.text, tt.lines); got != tt.want {
			t.Errorf("the last %d lines of %q are %q, want %q", tt.lines, tt.text, got, tt.want)
		}
	}
}

func TestLinkOrCopyKeepsTheContent(t *testing.T) {
	dir := t.TempDir()
	from, to := put(t, filepath.Join(dir, "from"), "x"), filepath.Join(dir, "to")
	if err := linkOrCopy(from, to); err != nil {
		t.Fatal(err)
	}
	a, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.Stat(to); err != nil || !os.SameFile(a, b) {
		t.Errorf("the file was copied, want a link (error %v)", err)
	}
	if err := linkOrCopy(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v for a file that exists", err)
	}
	if err := linkOrCopy(filepath.Join(dir, "missing"), filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for a file that is missing", err)
	}
}

func TestImagesAreHeldByTheMachinesMadeFromThem(t *testing.T) {
	dir := t.TempDir()
	image, other, machine := Image{Dir: filepath.Join(dir, "image-a")}, Image{Dir: filepath.Join(dir, "image-b")}, filepath.Join(dir, "machine")
	for _, d := range []string{image.Dir, other.Dir, machine} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(what string, a, b bool) {
		t.Helper()
		if held(image.Dir) != a || held(other.Dir) != b {
			t.Errorf("%s: held are %t and %t, want %t and %t", what, held(image.Dir), held(other.Dir), a, b)
		}
	}
	holds("at first", false, false)
	if err := errors.Join(image.Hold(machine), image.Hold(machine)); err != nil {
		t.Fatal(err)
	}
	holds("with a machine", true, false)
	if err := other.Hold(machine); err != nil {
		t.Fatal(err)
	}
	holds("after it was reinstalled", false, true)
	if err := os.RemoveAll(machine); err != nil {
		t.Fatal(err)
	}
	holds("after it was deleted", false, false)
	if err := image.Hold(machine); err == nil || !strings.Contains(err.Error(), image.Dir) {
		t.Errorf("error %v for a machine that does not exist", err)
	}
}

func TestProgramsAreFoundWhereTheyAreComplete(t *testing.T) {
	cache := Cache{Dir: t.TempDir()}
	t.Setenv(EnvDir, "")
	dir := t.TempDir()
	for _, name := range Names()[1:] {
		put(t, filepath.Join(dir, name), "")
	}
	_, err := FindPrograms(dir, cache)
	if want := filepath.Join(dir, Names()[0]); !IsMissing(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "make node") {
		t.Errorf("error %v does not name %s", err, want)
	}
	put(t, filepath.Join(dir, Names()[0]), "")
	if p, err := FindPrograms(dir, cache); err != nil || p.Path("runc") != filepath.Join(dir, "runc") {
		t.Errorf("programs %+v, error %v", p, err)
	}
	t.Setenv(EnvDir, dir)
	if p, err := FindPrograms("", cache); err != nil || p.Dir != dir {
		t.Errorf("programs of the environment %+v, error %v", p, err)
	}
	if IsMissing(nil) || IsMissing(errors.New("x")) {
		t.Error("any error is about missing programs")
	}
}

func TestNamesAreUnique(t *testing.T) {
	for _, list := range [][]string{Names(), Applets(), machineTools().Required, machineTools().Optional, proxyTools().Required, shellTools().Required, components()} {
		sorted := slices.Sorted(slices.Values(list))
		if len(slices.Compact(slices.Clone(sorted))) != len(list) {
			t.Errorf("a name is listed twice in %v", sorted)
		}
	}
	for _, name := range machineTools().Required {
		if slices.Contains(machineTools().Optional, name) {
			t.Errorf("%s is both required and optional", name)
		}
	}
}

// entriesOf returns the names of a tar archive with their types, targets and contents.
func entriesOf(t *testing.T, write func(*tar.Writer) error) map[string]string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s, so that no two layers are the same", h.Name, h.ModTime)
		}
		found[h.Name] = string(h.Typeflag) + " " + h.Linkname + string(data)
	}
}

func TestLayerOfKubernetesHasItsPrograms(t *testing.T) {
	binary := put(t, filepath.Join(t.TempDir(), "kube"), "ELF")
	found := entriesOf(t, func(w *tar.Writer) error { return writeKube(w, binary) })
	if found["usr/local/bin/kube"] != "0 ELF" {
		t.Errorf("the binary is %q", found["usr/local/bin/kube"])
	}
	for _, program := range kube.Programs() {
		if found["usr/local/bin/"+program] != "2 kube" {
			t.Errorf("%s is %q, want a link to the binary", program, found["usr/local/bin/"+program])
		}
	}
	if err := writeFile(tar.NewWriter(io.Discard), "x", filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for a file that is missing", err)
	}
}

func TestBaseLayerIsMerged(t *testing.T) {
	found := entriesOf(t, writeBase)
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if found[dir] != "2 usr/"+dir {
			t.Errorf("/%s is %q", dir, found[dir])
		}
	}
	if !strings.Contains(found["etc/passwd"], "root:") {
		t.Errorf("users %q", found["etc/passwd"])
	}
}

func TestLayersCanBeReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "layer.tar")
	l, err := newLayer(file, writeBase)
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if h, err := tar.NewReader(r).Next(); err != nil || h.Name != "etc/" {
		t.Errorf("the first entry is %+v, error %v", h, err)
	}
	size, err := l.Size()
	if info, statErr := os.Stat(file); err != nil || statErr != nil || info.Size() != size {
		t.Errorf("size %d, error %v", size, errors.Join(err, statErr))
	}
	again, err := newLayer(file+".2", writeBase)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := l.Digest()
	if second, _ := again.Digest(); first != second {
		t.Errorf("two layers of the same content have digests %s and %s", first, second)
	}
	cause := errors.New("disk full")
	if _, err := newLayer(file+".3", func(*tar.Writer) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestImmutablePathsAreShared(t *testing.T) {
	for path, want := range map[string]bool{
		"/s/io.containerd.content.v1.content/blobs/sha256/a": true, "/s/overlayfs/snapshots/1/fs/x": true, "/s/metadata.db": false, "/s/overlayfs/metadata.db": false,
	} {
		if got := immutable(path); got != want {
			t.Errorf("%s never changes: %t", path, got)
		}
	}
}

func TestOtherTags(t *testing.T) {
	b := Builder{Kube: kube.Binary{Version: "v0.0.0"}}
	if got := b.otherTags("etcd"); got != nil {
		t.Errorf("etcd has tags %v", got)
	}
	if diff := cmp.Diff(coreDNSTags(), b.otherTags(CoreDNS)); diff != "" {
		t.Errorf("CoreDNS (-want +got):\n%s", diff)
	}
	for _, tag := range b.otherTags(proxy) {
		own := Builder{Kube: kube.Binary{Version: tag}}
		if slices.Contains(own.otherTags(proxy), tag) {
			t.Errorf("kube-proxy %s has its own tag twice", tag)
		}
	}
}

func TestSkeletonNamesTheSandboxImage(t *testing.T) {
	root := t.TempDir()
	if err := copySkeleton(root, "registry.k8s.io/pause:3.10"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("PAUSE_IMAGE")) {
			t.Errorf("%s has a placeholder", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "etc/shadow")); err != nil || info.Mode() != 0o600 {
		t.Errorf("passwords have mode %v, error %v", info.Mode(), err)
	}
}
