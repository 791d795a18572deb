package pack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/pack"
)

const list = `kubeVersion: "1.36"
build: 4
packages:
- name: greeting
  registry: registry.example.com
  repository: team/hello
  versions:
  - chart: charts/hello-new/hello
    kubeVersions: ["1.36"]
    schema: any.json
    images: [{repository: images/hello, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000001"}]
  - chart: charts/hello
- versions: [{chart: charts/only, kubeVersions: ["1.35"]}]
`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// workshop contains charts and a definition.
func workshop(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"charts/hello-new/hello/Chart.yaml": "apiVersion: v2\nname: hello\nversion: 1.1.0\n",
		"charts/hello/Chart.yaml":           "apiVersion: v2\nname: hello\nversion: 1.0.0\n",
		"charts/hello/values.schema.json":   `{"required": ["title"]}`,
		"charts/only/Chart.yaml":            "apiVersion: v2\nname: only\nversion: 1.0.0\n",
		"any.json":                          `{"type": "object"}`,
		"bundle.yaml":                       list,
	} {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return dir
}

func build(t *testing.T, dir, kubernetes string) *pack.Built {
	t.Helper()
	definition, err := pack.ReadDefinition(filepath.Join(dir, "bundle.yaml"))
	must(t, err)
	if kubernetes != "" {
		definition.KubeVersion = kubernetes
	}
	built, err := pack.Build(definition)
	must(t, err)
	return built
}

func versions(built *pack.Built) []string {
	var out []string
	for _, p := range built.Bundle.Spec.Packages {
		for _, v := range p.Source.Versions {
			out = append(out, p.Name+"@"+v.Name)
		}
	}
	return out
}

func TestPackagesAreSelectedPerKubernetesVersion(t *testing.T) {
	t.Parallel()
	dir := workshop(t)
	for kubernetes, want := range map[string][]string{
		"1.36": {"greeting@1.1.0", "greeting@1.0.0"}, "1.35": {"greeting@1.0.0", "only@1.0.0"}, "1.34": {"greeting@1.0.0"},
	} {
		built := build(t, dir, kubernetes)
		if diff := cmp.Diff(want, versions(built)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kubernetes, diff)
		}
		if want := "v" + strings.ReplaceAll(kubernetes, ".", "-") + "-4"; built.Bundle.Name != want {
			t.Errorf("the bundle is %s, want %s", built.Bundle.Name, want)
		}
	}
}

func TestBundleMatchesTheList(t *testing.T) {
	t.Parallel()
	built := build(t, workshop(t), "")
	p := built.Bundle.Spec.Packages[0]
	if p.Source.Registry != "registry.example.com" || p.Source.Repository != "team/hello" || len(p.Source.Versions[0].Images) != 1 {
		t.Errorf("the package is %+v", p)
	}
	for version, accepts := range map[string]bool{"1.1.0": true, "1.0.0": false} {
		found, err := bundle.Find(built.Bundle, "greeting", version)
		must(t, err)
		if err := bundle.ValidateConfig(found.Version, "a: b"); (err == nil) != accepts {
			t.Errorf("config of %s: %v", version, err)
		}
	}
}

func TestFileTimesDoNotChangeTheBundle(t *testing.T) {
	t.Parallel()
	dir := workshop(t)
	first := build(t, dir, "")
	old := time.Unix(1_000_000, 0)
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
	if diff := cmp.Diff(first.Bundle, build(t, dir, "").Bundle); diff != "" {
		t.Errorf("the bundle is another one (-first +second):\n%s", diff)
	}
}

func TestChartsAreReadFromADirectory(t *testing.T) {
	t.Parallel()
	dir := workshop(t)
	built := build(t, dir, "1.35")
	out := t.TempDir()
	for i, chart := range built.Charts {
		must(t, os.WriteFile(filepath.Join(out, chart.Name+".tgz"), built.Archives[i], 0o600))
	}
	charts, err := pack.ReadCharts(out)
	must(t, err)
	digests := func(charts []*registry.Chart) map[string]string {
		found := map[string]string{}
		for _, c := range charts {
			content, err := c.Content()
			must(t, err)
			found[c.Name] = string(content.Manifest)
		}
		return found
	}
	if diff := cmp.Diff(digests(built.Charts), digests(charts)); diff != "" {
		t.Errorf("charts (-built +read):\n%s", diff)
	}
	must(t, os.WriteFile(filepath.Join(out, "bad.tgz"), []byte("hello"), 0o600))
	if _, err := pack.ReadCharts(out); err == nil || !strings.Contains(err.Error(), "bad.tgz") {
		t.Errorf("what is no chart: %v", err)
	}
}
