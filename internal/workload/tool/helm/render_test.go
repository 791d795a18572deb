package helm

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chart writes a chart with these files, besides a Chart.yaml and values.yaml.
func chart(t *testing.T, files map[string]string) string {
	t.Helper()
	all := map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: greeter\nversion: 1.2.3\nappVersion: \"7\"\nkubeVersion: \">= 1.30.0-0\"\n",
		"values.yaml": "greeting: hello\n",
	}
	maps.Copy(all, files)
	dir := t.TempDir()
	for name, content := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRenderSortsObjectsInInstallOrder(t *testing.T) {
	dir := chart(t, map[string]string{
		"templates/a.yaml": "kind: Deployment\nname: {{ .Release.Name }}\n---\nkind: Service\nnamespace: {{ .Release.Namespace }}\n",
		"templates/b.yaml": "kind: ConfigMap\ngreeting: {{ .Values.greeting }} {{ .Values.who }}\napp: {{ .Chart.AppVersion }}\n" +
			"kubernetes: {{ .Capabilities.KubeVersion.Version }}\n",
		"templates/empty.yaml":   "{{ if false }}kind: Secret{{ end }}",
		"templates/_partial.tpl": `{{ define "unused" }}{{ end }}`,
		"templates/NOTES.txt":    "Have fun.\n",
		"crds/kind.yaml":         "kind: CustomResourceDefinition\n",
	})
	r := Release{Name: "one", Namespace: "two", Kubernetes: "v1.36.3", Values: map[string]any{"who": "world"}}
	want := []string{
		"kind: CustomResourceDefinition",
		"kind: ConfigMap\ngreeting: hello world\napp: 7\nkubernetes: v1.36.3",
		"kind: Service\nnamespace: two",
		"kind: Deployment\nname: one",
	}
	for range 3 {
		got, err := Render(dir, r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("documents (-want +got):\n%s", diff)
		}
	}
}

func TestRenderRejectsInvalidCharts(t *testing.T) {
	tests := map[string]struct {
		files      map[string]string
		kubernetes string
		want       string
	}{
		"a cluster that the chart is not for": {kubernetes: "v1.29.9", want: "requires Kubernetes >= 1.30.0-0, cluster runs v1.29.9"},
		"a version that is none":              {kubernetes: "latest", want: `parsing Kubernetes version "latest"`},
		"a hook": {
			files: map[string]string{"templates/job.yaml": "kind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n"},
			want:  `"greeter/templates/job.yaml" is a hook`,
		},
		"a template that is broken": {files: map[string]string{"templates/a.yaml": "{{ .Values.a.b.c }}"}, want: "greeter/templates/a.yaml"},
		"values of the wrong form": {
			files: map[string]string{"values.schema.json": `{"properties": {"greeting": {"type": "number"}}}`},
			want:  "greeting",
		},
		"no chart": {files: map[string]string{"Chart.yaml": "name: x\n"}, want: "loading chart"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := Release{Name: "one", Namespace: "two", Kubernetes: tt.kubernetes}
			if r.Kubernetes == "" {
				r.Kubernetes = "v1.36.3"
			}
			_, err := Render(chart(t, tt.files), r)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
