package userdata

import "testing"

func TestFill(t *testing.T) {
	values := map[string]string{KeyVersion: "v1.36.3", KeyEndpoint: "192.0.2.1"}
	for _, tc := range []struct {
		name, in, want string
		withheld       bool
	}{
		{name: "known keys are filled in, whatever the spacing", in: "a {{ .kubernetesVersion }} b {{.controlPlaneEndpoint}} c {{-  .kubernetesVersion -}} d", want: "a v1.36.3 b 192.0.2.1 c v1.36.3 d"},
		{name: "escaped braces of cloud-init are unescaped", in: "provider-id: equinixmetal://{{ `{{ v1.instance_id }}` }}", want: "provider-id: equinixmetal://{{ v1.instance_id }}"},
		{name: "a known key inside an escape stays literal", in: "{{ `{{ .kubernetesVersion }}` }}", want: "{{ .kubernetesVersion }}"},
		{name: "braces of cloud-init pass unchanged without escapes too", in: "## template: jinja\nid: {{ v1.instance_id }}", want: "## template: jinja\nid: {{ v1.instance_id }}"},
		{name: "braces of Helm pass unchanged", in: "{{- if .Values.x }}{{ include \"a.b\" . | nindent 4 }}{{- end }}", want: "{{- if .Values.x }}{{ include \"a.b\" . | nindent 4 }}{{- end }}"},
		{name: "braces of containerd pass unchanged", in: "format = '{{.Name}} {{ range . }}'", want: "format = '{{.Name}} {{ range . }}'"},
		{name: "a lone brace passes unchanged", in: "a {{ b", want: "a {{ b"},
		{name: "keys with a known prefix pass unchanged", in: "{{ .kubernetesVersions }}", want: "{{ .kubernetesVersions }}"},
		{name: "missing values become empty", in: "[{{ .emlbID }}{{ .cpemConfig }}]", want: "[]"},
		{name: "the API key is withheld, and that is reported", in: "key={{ .apiKey }}", want: "key=", withheld: true},
		{name: "values are not filled in again", in: "{{ .controlPlaneEndpoint }}", want: "192.0.2.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, withheld := Fill(tc.in, values)
			if got != tc.want || withheld != tc.withheld {
				t.Errorf("got %q, %t; want %q, %t", got, withheld, tc.want, tc.withheld)
			}
		})
	}
}
