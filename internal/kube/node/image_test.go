package node

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube"
)

// testImage builds the image of the default version in its own cache, or skips the test.
func testImage(t *testing.T) Image {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: containerd mounts file systems")
	}
	b, err := NewBuilder("", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if IsMissing(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	image, err := b.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestImageContents(t *testing.T) {
	image := testImage(t)
	for _, path := range []string{
		"usr/bin/bash", "usr/sbin/nft", "usr/sbin/sshd", "usr/bin/containerd", "usr/bin/runc", "usr/lib/drover/kube", "opt/cni/bin/bridge", "opt/cni/bin/ptp",
	} {
		if info, err := os.Stat(filepath.Join(image.Root(), path)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%q in the root file system: %v, %v; want a program", path, info, err)
		}
	}
}

func TestMachineDirectoriesAreReadable(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(makeDirectories(root), copySkeleton(root, "pause:1"), os.Chmod(filepath.Join(root, "home"), 0o700),
		os.Chmod(filepath.Join(root, "usr"), 0o700), openDirectories(root)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{
		".": 0o755, "home": 0o755, "usr": 0o755, "root": 0o700, "tmp": 0o777 | fs.ModeSticky, "etc/passwd": 0o644, "etc/shadow": 0o600,
	} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode() &^ fs.ModeDir; got != want {
			t.Errorf("%s has mode %s, want %s", path, got, want)
		}
	}
}

func TestCopiedStoreSharesImmutableFilesOnly(t *testing.T) {
	image := testImage(t)
	// Hard links need the file system of the image.
	parent, err := os.MkdirTemp(filepath.Dir(image.Dir), "test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "store")
	if err := image.CopyStore(dir); err != nil {
		t.Fatal(err)
	}
	var own int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		shared := info.Sys().(*syscall.Stat_t).Nlink > 1
		if !shared {
			own += info.Size()
		}
		if filepath.Base(path) == "meta.db" && shared {
			t.Errorf("%q is shared with the image", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if own > 8<<20 {
		t.Errorf("a machine's store takes %d MiB of its own, want at most 8", own>>20)
	}
}

func TestParseImageNames(t *testing.T) {
	all := "example.test/kube-apiserver:v1 example.test/kube-controller-manager:v1 example.test/kube-scheduler:v1\n" +
		"example.test/kube-proxy:v1\nexample.test/coredns/coredns:v2\nexample.test/pause:3\n"
	got, err := parseImageNames(all + "example.test/etcd:4-0\n")
	if err != nil {
		t.Fatal(err)
	}
	want := imageSet{
		"kube-apiserver": "example.test/kube-apiserver:v1", "kube-controller-manager": "example.test/kube-controller-manager:v1",
		"kube-scheduler": "example.test/kube-scheduler:v1", "kube-proxy": "example.test/kube-proxy:v1",
		"coredns": "example.test/coredns/coredns:v2", "pause": "example.test/pause:3", "etcd": "example.test/etcd:4-0",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if _, err := parseImageNames(all); err == nil {
		t.Error("a list without etcd is accepted")
	}
}

func TestCoreDNSHasTheTagsOfAllVersions(t *testing.T) {
	for _, minor := range version.Minors() {
		full, err := version.ForMinor(minor)
		if err != nil {
			t.Fatal(err)
		}
		binary, err := kube.Find(kube.FindOptions{Version: full})
		if err != nil {
			t.Skip(err)
		}
		names, err := imageNames(t.Context(), binary)
		if err != nil {
			t.Fatal(err)
		}
		if _, tag, _ := strings.Cut(names[CoreDNS], ":"); !slices.Contains(coreDNSTags(), tag) {
			t.Errorf("kubeadm of %s asks for %q, and a cluster that began with it loses its names when it is upgraded", full, names[CoreDNS])
		}
	}
}

func TestKubeProxyHasTheTagsOfAllVersions(t *testing.T) {
	for _, own := range version.Shipped() {
		tags := append(proxyTags(own), own)
		slices.Sort(tags)
		if diff := gocmp.Diff(slices.Sorted(slices.Values(version.Shipped())), tags); diff != "" {
			t.Errorf("tags of kube-proxy on machines of %s (-shipped +tags):\n%s", own, diff)
		}
	}
}

func TestStoreSharesProgramsWithTheCache(t *testing.T) {
	image := testImage(t)
	for _, name := range []string{"usr/local/bin/kube", "coredns", "cni", "pause"} {
		files, err := filepath.Glob(filepath.Join(image.Dir, storeDir, "*", "snapshots", "*", "fs", name))
		if err != nil || len(files) != 1 {
			t.Errorf("%q is unpacked %d times, %v; want once", name, len(files), err)
			continue
		}
		info, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if info.Sys().(*syscall.Stat_t).Nlink < 2 {
			t.Errorf("%q has a file of its own", files[0])
		}
	}
}

func TestChartUsesThePreloadedImage(t *testing.T) {
	var chart struct{ AppVersion string }
	var values struct {
		Image struct{ Repository, Tag string }
	}
	for file, into := range map[string]any{"Chart.yaml": &chart, "values.yaml": &values} {
		data, err := os.ReadFile(filepath.Join("../../../charts/cni", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	if got := values.Image.Repository + ":" + cmp.Or(values.Image.Tag, chart.AppVersion); got != NetworkImage {
		t.Errorf("the chart runs %q, machines have %q", got, NetworkImage)
	}
}
