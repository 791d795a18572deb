package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"

	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/kube/payload"
	"github.com/drover-dev/drover/internal/operate/release"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/kubefake"
)

const packed = "drover_v1.2.3_linux_amd64.tar.gz"

// newPrograms returns a directory with programs of one platform: copies of this test, of which one
// has another as payload, and fake Flux controllers.
func newPrograms(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	platform := filepath.Join(dir, "linux_amd64")
	if err := os.Mkdir(platform, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"drover", "clusterctl"} {
		if err := os.WriteFile(filepath.Join(platform, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	attachPayload(t, filepath.Join(platform, "drover"), self)
	for _, c := range flux.Controllers() {
		kubefake.Program(t, filepath.Join(platform, "flux", c.Name), c.Module, c.Version)
	}
	return dir
}

func attachPayload(t *testing.T, executable, inside string) {
	t.Helper()
	sum, err := release.Sum(inside)
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := os.Create(filepath.Join(t.TempDir(), "payload"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(payload.Compress(compressed, in), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	header := payload.Header{Version: "v1.36.3", Key: "k", SHA256: sum.SHA256, Size: info.Size()}
	if err := payload.Attach(executable, compressed.Name(), header); err != nil {
		t.Fatal(err)
	}
}

// newKeyFiles writes a key pair and returns the file of the private key and the public keys.
func newKeyFiles(t *testing.T) (string, bundle.Keys) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "release.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := bundle.ParseKeys(map[string][]byte{"release.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})})
	if err != nil {
		t.Fatal(err)
	}
	return file, keys
}

// pack runs the command and returns the directory of the release.
func pack(t *testing.T, programs string, more ...string) string {
	t.Helper()
	t.Chdir("../..")
	out := filepath.Join(t.TempDir(), "release")
	args := append([]string{
		"--programs", programs, "--output", out, "--version", "v1.2.3", "--commit", "c0ffee",
		"--date", "2026-01-02T03:04:05Z", "--image", "drover-dev/manager:v1.2.3",
	}, more...)
	if err := run(append(args, "linux/amd64")); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReleaseIsVerifiable(t *testing.T) {
	key, keys := newKeyFiles(t)
	dir := pack(t, newPrograms(t), "--key", key)
	for _, name := range []string{packed, packed + ".spdx.json", components} {
		got, err := release.Verify(filepath.Join(dir, name), keys)
		if err != nil {
			t.Error(err)
		}
		if got.Source.Commit != "c0ffee" || got.Source.Version != "v1.2.3" || !strings.HasPrefix(got.Source.Go, "go1.") {
			t.Errorf("%s comes from %+v", name, got.Source)
		}
	}
}

func TestReleaseIsReproducible(t *testing.T) {
	programs := newPrograms(t)
	one := pack(t, programs)
	t.Chdir("hack/release")
	if err := os.Chtimes(filepath.Join(programs, "linux_amd64", "clusterctl"), time.Now(), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	two := pack(t, programs)
	for _, name := range []string{packed, packed + ".spdx.json", components, release.Checksums} {
		a, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(two, name))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) {
			t.Errorf("two builds of %s differ", name)
		}
	}
}

func TestArchiveContainsPrograms(t *testing.T) {
	f, err := os.Open(filepath.Join(pack(t, newPrograms(t)), packed))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.Mode
	}
	prefix := "drover_v1.2.3_linux_amd64/"
	want := map[string]int64{
		prefix + "drover": 0o755, prefix + "clusterctl": 0o755,
		prefix + "flux/source-controller": 0o755, prefix + "flux/kustomize-controller": 0o755,
		prefix + "CHANGELOG.md": 0o644, prefix + "LICENSE": 0o644, prefix + "README.md": 0o644,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSBOMListsModulesOfEveryProgram(t *testing.T) {
	f, err := os.Open(filepath.Join(pack(t, newPrograms(t)), packed+".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := json.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	known, versions := map[common.ElementID]string{"DOCUMENT": ""}, map[string][]string{}
	for _, p := range d.Packages {
		if known[p.PackageSPDXIdentifier] != "" {
			t.Errorf("two packages have the identifier %q", p.PackageSPDXIdentifier)
		}
		known[p.PackageSPDXIdentifier] = p.PackageName
		versions[p.PackageName] = append(versions[p.PackageName], p.PackageVersion)
	}
	needs := map[string][]string{}
	for _, r := range d.Relationships {
		from, to := known[r.RefA.ElementRefID], known[r.RefB.ElementRefID]
		if to == "" {
			t.Errorf("%s %s an unknown package", r.RefA.ElementRefID, r.Relationship)
		}
		needs[from] = append(needs[from], to)
	}
	for _, program := range []string{"drover", "clusterctl", "kubernetes"} {
		for _, module := range []string{"github.com/spdx/tools-golang", "stdlib"} {
			if !slices.Contains(needs[program], module) {
				t.Errorf("%s doesn't depend on %s", program, module)
			}
		}
	}
	for _, c := range flux.Controllers() {
		if !slices.Contains(needs[packed], c.Name) || !slices.Contains(needs[c.Name], "stdlib") {
			t.Errorf("%s is not listed with its modules", c.Name)
		}
		for _, name := range []string{c.Name, c.Module} {
			if got := versions[name]; !slices.Equal(got, []string{c.Version}) {
				t.Errorf("the versions of %s are %q, want %s", name, got, c.Version)
			}
		}
	}
}

func TestReleaseRejectsOutdatedControllers(t *testing.T) {
	programs := newPrograms(t)
	c := flux.Source()
	kubefake.Program(t, filepath.Join(programs, "linux_amd64", flux.Dir, c.Name), c.Module, "v1.0.0")
	t.Chdir("../..")
	err := run([]string{
		"--programs", programs, "--output", filepath.Join(t.TempDir(), "release"), "--version", "v1.2.3", "--commit", "c0ffee",
		"--date", "2026-01-02T03:04:05Z", "--image", "i", "linux/amd64",
	})
	var version *flux.VersionError
	if !errors.As(err, &version) {
		t.Errorf("got error %v, want a VersionError", err)
	}
}

func TestFailureKeepsTheLastRelease(t *testing.T) {
	t.Chdir("../..")
	out := filepath.Join(t.TempDir(), "release")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	err := run([]string{
		"--programs", t.TempDir(), "--output", out, "--version", "v1.2.3", "--commit", "c0ffee",
		"--date", "2026-01-02T03:04:05Z", "--image", "i", "linux/amd64",
	})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without programs: %v", err)
	}
	if _, err := os.Stat(out); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(out + ".new"); err == nil {
		t.Error("files of the failed release remain")
	}
}

func TestUncommittedChangesAreNotSigned(t *testing.T) {
	key, _ := newKeyFiles(t)
	t.Chdir("../..")
	err := run([]string{
		"--programs", newPrograms(t), "--output", filepath.Join(t.TempDir(), "release"), "--version", "v1.2.3-dev.7+g1a2b3c4d5e6f.dirty.0a1b2c3d",
		"--commit", "c0ffee", "--date", "2026-01-02T03:04:05Z", "--image", "drover-dev/manager:v1.2.3", "--key", key, "linux/amd64",
	})
	if err == nil || !strings.Contains(err.Error(), "uncommitted changes") {
		t.Errorf("got error %v, want one that contains %q", err, "uncommitted changes")
	}
}
