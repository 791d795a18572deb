package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestComposeValues(t *testing.T) {
	const both = "imagePullSecrets:\n- name: ecr-token\n- name: registry-mirror-cred\n"
	for _, tc := range []struct{ name, config, want string }{
		{"nothing", "", both + "sourceRegistry: images.example.com\n"},
		{"config", "a: {b: [1, x]}", "a: {b: [1, x]}\nsourceRegistry: images.example.com\n" + both},
		{"another registry", "sourceRegistry: mine.example.com", "sourceRegistry: mine.example.com\n" + both},
		{
			"other secrets", "imagePullSecrets: [{name: mine}]",
			"imagePullSecrets: [{name: mine}, {name: ecr-token}, {name: registry-mirror-cred}]\nsourceRegistry: images.example.com\n",
		},
		{
			"secrets that are listed", "imagePullSecrets: [{name: registry-mirror-cred}, ecr-token]",
			"imagePullSecrets: [{name: registry-mirror-cred}, ecr-token]\nsourceRegistry: images.example.com\n",
		},
		{"secrets that are no list", "imagePullSecrets: mine", "imagePullSecrets: mine\nsourceRegistry: images.example.com\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var config, want, got map[string]any
			parse(t, tc.config, &config)
			parse(t, tc.want, &want)
			text, err := composeValues(config, "images.example.com")
			if err != nil {
				t.Fatal(err)
			}
			parse(t, text, &got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			var again map[string]any
			parse(t, tc.config, &again)
			if diff := cmp.Diff(again, config); diff != "" {
				t.Errorf("config was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func TestDefaultNamespace(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"set", map[string]string{"values.yaml": "defaultNamespace: eksa-hello\n"}, "eksa-hello"},
		{"not set", map[string]string{"values.yaml": "a: b\n"}, ""},
		{"no values", nil, ""},
		{"set by a subchart", map[string]string{"charts/inner/values.yaml": "defaultNamespace: inner\n"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := defaultNamespace(artifacttest.Chart(t, "hello", "1.0.0", tc.files))
			if err != nil || got != tc.want {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
		})
	}
	for name, archive := range map[string][]byte{
		"no archive":   []byte("hello"),
		"truncated":    artifacttest.Chart(t, "hello", "1.0.0", map[string]string{"values.yaml": strings.Repeat("a: b\n", 1000)})[:60],
		"invalid YAML": artifacttest.Chart(t, "hello", "1.0.0", map[string]string{"values.yaml": "[1"}),
	} {
		if got, err := defaultNamespace(archive); err == nil {
			t.Errorf("%s: %q and no error", name, got)
		}
	}
}
