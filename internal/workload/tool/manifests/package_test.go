package manifests

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const (
	account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n"
	config  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: hello}\n"
)

// one is a Fetcher of a single archive.
type one []byte

func (o one) Fetch(context.Context, artifact.Ref, artifact.Resolved) ([]byte, error) { return o, nil }

// sharedReaders saves starting a child per package.
var sharedReaders = newReaders(readTime)

// built returns kind and name of a package's objects, or the error.
func built(t *testing.T, files map[string]string, values map[string]any) ([]map[string]any, error) {
	t.Helper()
	want := tool.Want{Package: artifact.Ref{Name: "web"}, Resolved: artifact.Resolved{Digest: "sha256:x"}, Values: values}
	p := newPackages(one(artifacttest.Archive(t, files)))
	p.readers = sharedReaders
	return p.build(t.Context(), "tenant", want)
}

func titles(objects []map[string]any) []string {
	var out []string
	for _, o := range objects {
		name, _ := o["metadata"].(map[string]any)["name"].(string)
		out = append(out, o["kind"].(string)+" "+name)
	}
	return out
}

func TestPackageIsRendered(t *testing.T) {
	kustomization := "resources: [../../base]\nnamePrefix: prod-\n"
	for name, tt := range map[string]struct {
		files  map[string]string
		values map[string]any
		want   []string
	}{
		"plain files, by what needs what": {
			files: map[string]string{"a/config.yaml": config, "b.yml": account, "c.json": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`},
			want:  []string{"Namespace n", "ServiceAccount web", "ConfigMap web"},
		},
		"several documents and a list": {
			files: map[string]string{"all.yaml": account + "---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"},
			want:  []string{"ServiceAccount web", "Secret s"},
		},
		"hidden files and other files are none of it": {
			files: map[string]string{"a.yaml": account, ".github/x.yaml": "a: b", "README.md": "x", "sub/.b.yaml": "a: b"},
			want:  []string{"ServiceAccount web"},
		},
		"a directory of it": {
			files: map[string]string{"one/a.yaml": account, "two/b.yaml": config}, values: map[string]any{"path": "two"},
			want: []string{"ConfigMap web"},
		},
		"a repository's archive, with all in one directory": {
			files: map[string]string{"web/one/a.yaml": account, "web/two/b.yaml": config}, values: map[string]any{"path": "./two/"},
			want: []string{"ConfigMap web"},
		},
		"a kustomization at the root": {
			files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\nnameSuffix: -x\n", "a.yaml": account, "b.yaml": config},
			want:  []string{"ServiceAccount web-x"},
		},
		"a kustomization that builds on another directory": {
			files: map[string]string{
				"overlays/prod/kustomization.yaml": kustomization, "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": account,
			},
			values: map[string]any{"path": "overlays/prod"}, want: []string{"ServiceAccount prod-web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := built(t, tt.files, tt.values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, titles(objects)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidPackagesAreTerminal(t *testing.T) {
	kustomization := func(text string) map[string]string {
		return map[string]string{"kustomization.yaml": text, "a.yaml": account, "github.com/x/y/kustomization.yaml": "resources: []", "https:/x/a.yaml": account}
	}
	for name, tt := range map[string]struct {
		files  map[string]string
		values map[string]any
		want   string
	}{
		"nothing in it":             {files: map[string]string{"README.md": "x"}, want: "archive contains no manifests"},
		"not YAML":                  {files: map[string]string{"x.yaml": "a: b: canary-1"}, want: `reading "x.yaml": invalid YAML`},
		"not an object":             {files: map[string]string{"x.yaml": "a: canary-1"}, want: "document has no apiVersion and kind"},
		"no name":                   {files: map[string]string{"x.yaml": "apiVersion: v1\nkind: Pod\n"}, want: "Pod has no name"},
		"a file that leads out":     {files: map[string]string{"../x.yaml": account}, want: "points outside the archive"},
		"no such directory":         {files: map[string]string{"x.yaml": account}, values: map[string]any{"path": "y"}, want: `archive has no directory "y"`},
		"a value that nobody knows": {files: map[string]string{"x.yaml": account}, values: map[string]any{"replicas": 1}, want: `unknown value "replicas"`},
		"a value of the wrong type": {files: map[string]string{"x.yaml": account}, values: map[string]any{"path": 1}, want: `value "path" must be a string`},
		"a base on the network":     {files: kustomization("resources: [https://example.invalid/a.yaml]"), want: "remote references are not supported"},
		"a base in the archive or on the network, who knows": {files: kustomization("resources: [github.com/x/y]"), want: "remote references are not supported"},
		"an address that is a path too":                      {files: kustomization("resources: ['https:/x/a.yaml']"), want: "remote references are not supported"},
		"a base by git":                                      {files: kustomization("resources: ['git@example.invalid:x/y']"), want: "remote references are not supported"},
		"a patch on the network":                             {files: kustomization("patches: [{path: 'https://example.invalid/p'}]"), want: "remote references are not supported"},
		"a file for a generator":                             {files: kustomization("configMapGenerator: [{name: x, files: ['a=https://example.invalid/p']}]"), want: "remote references are not supported"},
		"a plugin":                                           {files: kustomization("transformers: [a.yaml]"), want: "which are not supported"},
		"a chart":                                            {files: kustomization("helmCharts: [{name: x}]"), want: "which are not supported"},
		"a base on the network of a base": {
			files: map[string]string{"kustomization.yaml": "resources: [b]", "b/kustomization.yml": "resources: ['//example.invalid/a']"}, want: "remote references are not supported",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := built(t, tt.files, tt.values)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, new(*tool.TerminalError)) {
				t.Errorf("error %v, want a terminal one with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("error %v quotes the file", err)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	for name, tt := range map[string]struct {
		text       string
		substitute any
		want       any
		fails      string
	}{
		"nothing is asked for": {text: "${NAME}", want: "${NAME}"},
		"a text":               {text: "a-${NAME}-b", substitute: map[string]any{"NAME": "x"}, want: "a-x-b"},
		"twice":                {text: "${A}${B}", substitute: map[string]any{"A": "x", "B": 2}, want: "x2"},
		"a number takes the place of a whole text": {text: "${N}", substitute: map[string]any{"N": 3}, want: int64(3)},
		"a number in quotes is a text":             {text: "${N}", substitute: map[string]any{"N": "3"}, want: "3"},
		"a list takes the place of a whole text":   {text: "${L}", substitute: map[string]any{"L": []any{1, "b"}}, want: []any{int64(1), "b"}},
		"a list within a text":                     {text: "a${L}", substitute: map[string]any{"L": []any{1}}, fails: `variable "L": a map or list`},
		"a default":                                {text: "x${A:=b c}", substitute: map[string]any{}, want: "xb c"},
		"a default that is a number":               {text: "${A:=2}", substitute: map[string]any{}, want: int64(2)},
		"a default that is a number in quotes":     {text: `${A:="2"}`, substitute: map[string]any{}, want: "2"},
		"an empty default":                         {text: "${A:=}", substitute: map[string]any{}, want: ""},
		"a value beats a default":                  {text: "${A:=b}", substitute: map[string]any{"A": "c"}, want: "c"},
		"no value":                                 {text: "${A}", substitute: map[string]any{"B": "canary-1"}, fails: `variable "A" has no value and no default`},
		"one that stands for itself":               {text: "$${A} ${B}", substitute: map[string]any{"B": "x"}, want: "${A} x"},
		"only that":                                {text: "$${A}", substitute: map[string]any{}, want: "${A}"},
		"words of a shell":                         {text: "${A:-x} $A ${1}", substitute: map[string]any{}, want: "${A:-x} $A ${1}"},
		"a value is not looked into":               {text: "${A}", substitute: map[string]any{"A": "${B}"}, want: "${B}"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := parseValues(map[string]any{"substitute": tt.substitute})
			if err != nil {
				t.Fatal(err)
			}
			object := map[string]any{"spec": []any{map[string]any{"field": tt.text}}}
			if v.substitute != nil {
				err = v.substituteAll(object)
			}
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "canary") {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if diff := cmp.Diff(tt.want, object["spec"].([]any)[0].(map[string]any)["field"]); diff != "" || err != nil {
				t.Errorf("error %v, (-want +got):\n%s", err, diff)
			}
		})
	}
}
