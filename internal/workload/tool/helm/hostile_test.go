package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/yamltest"
)

// renderFiles renders a chart with these files as an operation does, without a cluster.
func renderFiles(t testing.TB, files map[string]string, values map[string]any) (*product, error) {
	t.Helper()
	all := &archives{by: map[string][]byte{}}
	resolved := all.put(t, "1.0.0", files)
	e := New(all)
	e.renderers = newRenderers(5 * time.Second)
	t.Cleanup(e.renderers.Close)
	return e.run(t.Context(), exampleJob(resolved, values), all.peer(resolved))
}

// peer answers a child for a chart without lookups.
func (a *archives) peer(resolved artifact.Resolved) peer {
	return peer{archive: func(ctx context.Context) ([]byte, error) { return a.Fetch(ctx, artifact.Ref{}, resolved) }}
}

func exampleJob(resolved artifact.Resolved, values map[string]any) renderJob {
	return renderJob{
		Digest: resolved.Digest, Values: values, Kubernetes: "v1.36.3", APIVersions: common.DefaultCapabilities.APIVersions,
		Release: common.ReleaseOptions{Name: "web", Namespace: "default", Revision: 1, IsInstall: true},
	}
}

// TestHostileChartsAreStopped renders charts that would take all memory or never end.
func TestHostileChartsAreStopped(t *testing.T) {
	const object = "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: "
	for name, template := range map[string]string{
		"a long text":      object + `{{ repeat 2000000000 "x" }}`,
		"a long list":      object + `{{ range until 2000000000 }}x{{ end }}`,
		"a long loop":      object + `{{ range 20000000000 }}x{{ end }}`,
		"doubled text":     object + `{{ $x := "x" }}{{ range 40 }}{{ $x = cat $x $x }}{{ end }}{{ $x }}`,
		"nested loops":     object + `{{ range 100000 }}{{ range 100000 }}{{ range 100000 }}{{ end }}{{ end }}{{ end }}`,
		"too large result": object + `{{ repeat 40000000 "x" }}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := renderFiles(t, map[string]string{"templates/a.yaml": template}, nil)
			var exceeded *confined.ExceededError
			if !errors.As(err, &exceeded) {
				t.Errorf("got error %v, want a %T", err, exceeded)
			}
		})
	}
}

// nestedCharts nests charts in directories. dependency returns how a chart depends on the next one.
func nestedCharts(levels int, dependency func(name string) string) map[string]string {
	files, dir, name := map[string]string{"crds/a.yaml": ""}, "", "app"
	for level := range levels {
		next := fmt.Sprintf("c%d", level)
		files[dir+"Chart.yaml"] = strings.ReplaceAll(chartFile, "app", name) + "dependencies:\n" + dependency(next)
		files[dir+"values.yaml"] = "exported: {a: b}\n"
		dir, name = dir+"charts/"+next+"/", next
	}
	files[dir+"Chart.yaml"], files[dir+"values.yaml"] = strings.ReplaceAll(chartFile, "app", name), "exported: {a: b}\n"
	return files
}

func tenAliases(name string) string {
	var out strings.Builder
	for n := range 10 {
		fmt.Fprintf(&out, "- {name: %s, version: 1.0.0, alias: a%d}\n", name, n)
	}
	return out.String()
}

func tenImports(name string) string {
	var imports strings.Builder
	for n := range 10 {
		fmt.Fprintf(&imports, "{child: exported, parent: exported.x%d},", n)
	}
	return "- {name: " + name + ", version: 1.0.0, import-values: [" + imports.String() + "]}\n"
}

// TestHostileDependenciesAreStopped installs charts of a few kilobytes that become a million.
func TestHostileDependenciesAreStopped(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	b.renderers = newRenderers(2 * time.Second)
	t.Cleanup(b.renderers.Close)
	for name, dependency := range map[string]func(string) string{"aliases": tenAliases, "imported values": tenImports} {
		want := b.want("web", b.put(t, "1.0.0", nestedCharts(6, dependency)))
		for action, do := range map[string]func() error{
			"apply": func() error { _, err := b.Apply(t.Context(), b.cluster, want); return err },
			"diff":  func() error { _, err := b.Diff(t.Context(), b.cluster, want); return err },
		} {
			t.Run(name+", "+action, func(t *testing.T) {
				yamltest.Attack(t, func() error {
					err := do()
					var exceeded *confined.ExceededError
					if !errors.As(err, &exceeded) {
						t.Errorf("got error %v, want a %T", err, exceeded)
					}
					return err
				})
			})
		}
	}
}

// TestHostileLookupsAreStopped installs a chart that asks the manager for objects without end.
func TestHostileLookupsAreStopped(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	chart := b.put(t, "1.0.0", map[string]string{"templates/a.yaml": `{{ range 20000000000 }}{{ lookup "v1" "ConfigMap" "default" "absent" }}{{ end }}`})
	_, err := b.Apply(t.Context(), b.cluster, b.want("web", chart))
	var exceeded *confined.ExceededError
	if !errors.As(err, &exceeded) || len(b.wire.Requests()) > 2*maxLookups {
		t.Errorf("error %v after %d requests", err, len(b.wire.Requests()))
	}
}

func TestSchemasResolveNothingExternal(t *testing.T) {
	requested := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requested = true
		_, _ = w.Write([]byte(`{"type": "number"}`))
	}))
	t.Cleanup(server.Close)
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"const": "hunter2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]string{
		"loopback":            `{"properties": {"a": {"$ref": "` + server.URL + `/schema.json"}}}`,
		"a schema of schemas": `{"$schema": "` + server.URL + `/schema.json"}`,
		"a file":              `{"properties": {"a": {"$ref": "file://` + secret + `"}}}`,
		"a relative file":     `{"properties": {"a": {"allOf": [{"$ref": "../../../../` + secret + `"}]}}}`,
		"by its ID":           `{"$id": "` + server.URL + `/x/", "properties": {"a": {"$ref": "schema.json"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderFiles(t, map[string]string{"values.schema.json": schema}, map[string]any{"a": "text"})
			if requested || err != nil && strings.Contains(err.Error(), "hunter2") || err != nil && strings.Contains(err.Error(), "number") {
				t.Errorf("the schema was resolved (requested: %t): %v", requested, err)
			}
		})
	}
	local := `{"$schema": "https://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "number"}}}`
	if _, err := renderFiles(t, map[string]string{"values.schema.json": local}, map[string]any{"a": "text"}); err == nil || !strings.Contains(err.Error(), "number") {
		t.Errorf("a local reference is not resolved: %v", err)
	}
}

// TestConfinedRenderingKeepsTypes compares with a rendering in this process.
func TestConfinedRenderingKeepsTypes(t *testing.T) {
	template := "kind: ConfigMap\nvalues: {{ toJson .Values }}\n" +
		`types: {{ kindOf .Values.i }} {{ kindOf .Values.f }} {{ kindOf .Values.n }} {{ kindOf .Values.own }}` + "\n" +
		`version: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "v1" }} {{ .Capabilities.HelmVersion.Version }}` + "\n"
	values := map[string]any{
		"i": int64(1), "f": 1000000.0, "n": nil, "list": []any{nil, "a", 1.5, map[string]any{"x": nil}}, "empty": map[string]any{}, "none": []any{}, "b": true,
	}
	files := map[string]string{"templates/a.yaml": template, "values.yaml": "own: 10000000\nn: 5\n"}
	got, err := renderFiles(t, files, values)
	if err != nil {
		t.Fatal(err)
	}
	all := &archives{by: map[string][]byte{}}
	resolved := all.put(t, "1.0.0", files)
	chart, err := newCharts(all).load(t.Context(), artifact.Ref{Name: "app"}, resolved)
	if err != nil {
		t.Fatal(err)
	}
	if err := process(chart, values); err != nil {
		t.Fatal(err)
	}
	j := exampleJob(resolved, values)
	capabilities, err := j.capabilities()
	if err != nil {
		t.Fatal(err)
	}
	want, err := rendering{chart: chart, values: values, capabilities: capabilities, release: j.Release}.run()
	if err != nil {
		t.Fatal(err)
	}
	if got.Manifests[0].Content != want.manifests[0].Content || got.Manifests[0].Name != want.manifests[0].Name {
		t.Errorf("confined:\n%s\nhere:\n%s", got.Manifests[0].Content, want.manifests[0].Content)
	}
}

// BenchmarkConfinedRender measures the same as BenchmarkRender, in a child.
func BenchmarkConfinedRender(b *testing.B) {
	all := &archives{by: map[string][]byte{}}
	resolved := all.put(b, "1.0.0", four)
	e := New(all)
	b.Cleanup(e.renderers.Close)
	from := all.peer(resolved)
	run := func() {
		if _, err := e.run(b.Context(), exampleJob(resolved, map[string]any{"greeting": "hi"}), from); err != nil {
			b.Fatal(err)
		}
	}
	begin := time.Now()
	run()
	first := time.Since(begin)
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(first.Milliseconds()), "ms/first")
}
