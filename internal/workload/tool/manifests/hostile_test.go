package manifests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/yamltest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestHostileManifestsAreNotParsed(t *testing.T) {
	yamltest.Attack(t, func() error { _, err := parse([]byte(config + yamltest.Text())); return err })
}

// overlays returns a kustomization of two overlays per level, which both refer to both of the next.
func overlays(levels int) map[string]string {
	files := map[string]string{"kustomization.yaml": "resources: [a0, b0]\n"}
	for level := range levels {
		next := fmt.Sprintf("resources: [../a%d, ../b%d]\n", level+1, level+1)
		if level == levels-1 {
			next = "resources: [../base]\n"
		}
		for _, name := range []string{"a", "b"} {
			files[fmt.Sprintf("%s%d/kustomization.yaml", name, level)] = "namePrefix: " + name + "\n" + next
		}
	}
	files["base/kustomization.yaml"], files["base/config.yaml"] = "resources: [config.yaml]\n", config
	return files
}

// buildFiles reads a package as an operation does.
func buildFiles(t *testing.T, p *packages, files map[string]string) ([]map[string]any, error) {
	t.Helper()
	p.fetcher = one(artifacttest.Archive(t, files))
	return p.build(t.Context(), "tenant", tool.Want{})
}

func newTestPackages(t *testing.T) *packages {
	t.Helper()
	p := newPackages(nil)
	p.readers = newReaders(2 * time.Second)
	t.Cleanup(p.readers.Close)
	return p
}

func TestExponentialKustomizationIsStopped(t *testing.T) {
	p := newTestPackages(t)
	if objects, err := buildFiles(t, p, overlays(2)); err != nil || len(objects) != 4 {
		t.Fatalf("two levels: %d objects (%v)", len(objects), err)
	}
	yamltest.Attack(t, func() error {
		_, err := buildFiles(t, p, overlays(16))
		var exceeded *confined.ExceededError
		var terminal *tool.TerminalError
		if !errors.As(err, &exceeded) || !errors.As(err, &terminal) {
			t.Errorf("got error %v, want a %T", err, exceeded)
		}
		return err
	})
}

// TestSchemasOfPackagesDoNotAffectOthers patches a list whose items are merged by name.
func TestSchemasOfPackagesDoNotAffectOthers(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: one, image: one}, {name: two, image: two}]}\n"
	patched := map[string]string{
		"pod.yaml": pod, "patch.yaml": strings.ReplaceAll(pod, "{name: one, image: one}, ", ""),
		"kustomization.yaml": "resources: [pod.yaml]\npatches: [{path: patch.yaml}]\n",
	}
	own := with(patched, map[string]string{
		"kustomization.yaml": patched["kustomization.yaml"] + "openapi: {path: schema.json}\n", "schema.json": `{"definitions": {}}`,
	})
	p := newTestPackages(t)
	for i, want := range []int{2, 1, 2} {
		files := patched
		if want == 1 {
			files = own
		}
		objects, err := buildFiles(t, p, files)
		if err != nil {
			t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(objects[0], "spec", "containers")
		if len(containers) != want {
			t.Errorf("package %d has %d containers, want %d", i, len(containers), want)
		}
	}
}

func zipText(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	_, err := zipper.Write([]byte(text))
	must(t, errors.Join(err, zipper.Close()))
	return out.Bytes()
}

func TestHostileRecordsAreBroken(t *testing.T) {
	text := `{"objects":[{"a":[` + strings.Repeat("[],", safeyaml.MaxValues) + `0]}]}`
	secret := &corev1.Secret{Data: map[string][]byte{recordKey: zipText(t, text)}}
	yamltest.Attack(t, func() error {
		if decode(secret).broken {
			return errors.New("broken")
		}
		return nil
	})
}

// FuzzDecodeRecord checks that every record is read or broken.
func FuzzDecodeRecord(f *testing.F) {
	for _, seed := range []string{`{}`, `{"revision":1,"status":"deployed","objects":[{"kind":"ConfigMap"}],"before":[{"kind":"a"}],"last":{"objects":[null]}}`, `[]`, `{"objects":{}}`} {
		f.Add(zipText(f, seed), "1")
	}
	f.Add([]byte("x"), "x")
	f.Fuzz(func(t *testing.T, data []byte, revision string) {
		secret := &corev1.Secret{Data: map[string][]byte{recordKey: data}}
		secret.Labels = map[string]string{revisionLabel: revision}
		rec := decode(secret)
		next := &record{}
		next.succeed(rec)
		for _, r := range []*record{rec, next} {
			r.leftovers()
			for _, o := range r.all() {
				o.GetName()
			}
		}
	})
}

// FuzzUnpack checks that unpacked files are below the directory that they are read from.
func FuzzUnpack(f *testing.F) {
	f.Add("a.yaml", config, "kustomization.yaml", "resources: [a.yaml]")
	f.Add("dir/../a.yaml", config, "dir/./b.yaml", config)
	f.Add("../a.yaml", "", "/b.yaml", "")
	f.Fuzz(func(t *testing.T, first, firstText, second, secondText string) {
		files, err := unpack(packFiles(t, [2]string{first, firstText}, [2]string{second, secondText}))
		if err != nil {
			return
		}
		for name := range files {
			if !fs.ValidPath(name) {
				t.Errorf("unpacked %q", name)
			}
		}
	})
}

// packFiles returns what fits into an archive.
func packFiles(t testing.TB, files ...[2]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	for _, f := range files {
		if out.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}) == nil {
			_, _ = out.Write([]byte(f[1])) // A directory has no content.
		}
	}
	_ = out.Close()
	return zipText(t, packed.String())
}
