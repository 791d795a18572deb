package userdata

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	values := map[string]string{KeyVersion: "v1.36.3", KeyEndpoint: "192.0.2.1"}
	for _, tc := range []struct {
		name, in, want string
		withheld       bool
	}{
		{name: "known keys are filled in, however they are spaced", in: "a {{ .kubernetesVersion }} b {{.controlPlaneEndpoint}} c {{-  .kubernetesVersion -}} d", want: "a v1.36.3 b 192.0.2.1 c v1.36.3 d"},
		{name: "quoted braces of cloud-init come out as they were meant", in: "provider-id: equinixmetal://{{ `{{ v1.instance_id }}` }}", want: "provider-id: equinixmetal://{{ v1.instance_id }}"},
		{name: "a known key inside quotes stays literal", in: "{{ `{{ .kubernetesVersion }}` }}", want: "{{ .kubernetesVersion }}"},
		{name: "braces of cloud-init pass untouched without quotes too", in: "## template: jinja\nid: {{ v1.instance_id }}", want: "## template: jinja\nid: {{ v1.instance_id }}"},
		{name: "braces of Helm pass untouched", in: "{{- if .Values.x }}{{ include \"a.b\" . | nindent 4 }}{{- end }}", want: "{{- if .Values.x }}{{ include \"a.b\" . | nindent 4 }}{{- end }}"},
		{name: "braces of containerd pass untouched", in: "format = '{{.Name}} {{ range . }}'", want: "format = '{{.Name}} {{ range . }}'"},
		{name: "a lone brace passes untouched", in: "a {{ b", want: "a {{ b"},
		{name: "keys that only begin alike pass untouched", in: "{{ .kubernetesVersions }}", want: "{{ .kubernetesVersions }}"},
		{name: "unset values become nothing", in: "[{{ .emlbID }}{{ .cpemConfig }}]", want: "[]"},
		{name: "the key to the API becomes nothing, and that is told", in: "key={{ .apiKey }}", want: "key=", withheld: true},
		{name: "a value is not looked at again", in: "{{ .controlPlaneEndpoint }}", want: "192.0.2.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, withheld := Render(tc.in, values)
			if got != tc.want || withheld != tc.withheld {
				t.Errorf("got %q, %t; want %q, %t", got, withheld, tc.want, tc.withheld)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a megabyte fits":                    {in: strings.Repeat("x", MaxSize)},
		"more does not":                      {in: strings.Repeat("x", MaxSize+1), want: "the bootstrap data is 1048577 bytes"},
		"nothing is a mistake":               {in: " \n", want: "the bootstrap data is empty"},
		"a cloud-config":                     {in: "#cloud-config\nruncmd: [ls]\n"},
		"a cloud-config without a key":       {in: "#cloud-config\n"},
		"keys that nobody knows":             {in: "#cloud-config\nfrobnicate: {deeply: [true]}\n"},
		"literal braces in a cloud-config":   {in: "#cloud-config\nruncmd:\n- echo '{{ x }} {% raw'\n"},
		"broken YAML, with the place":        {in: "#cloud-config\nruncmd:\n- a\n  b: [\n", want: "the bootstrap data is a cloud-config that is not YAML: look at line"},
		"a list instead of keys":             {in: "#cloud-config\n- a\n", want: "the bootstrap data is a cloud-config that is not YAML: it must hold keys"},
		"a template is judged by its reader": {in: "## template: jinja\n#cloud-config\n{% if x %}a: [{% endif %}\n"},
		"a script is judged by its reader":   {in: "#!/bin/sh\necho [\n"},
		"so is what starts with other words": {in: "#cloud-config-archive\n- [\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Check(tc.in); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckRepeatsNothingOfTheData(t *testing.T) {
	if got := Check("#cloud-config\npassword: *topsecret\n"); got == "" || strings.Contains(got, "topsecret") {
		t.Errorf("got %q", got)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("{{ v1.instance_id }} {{{{ }}}} `") // more are in testdata
	values := map[string]string{KeyVersion: "{{ .controlPlaneEndpoint }}", KeyEndpoint: "`e`", KeyAPIKey: "TOPSECRET", KeyEMLBID: "{{ .apiKey }}"}
	f.Fuzz(func(t *testing.T, in string) {
		got, withheld := Render(in, values)
		if strings.Contains(got, "TOPSECRET") && !strings.Contains(in, "TOPSECRET") {
			t.Errorf("%q became %q, which holds the API key", in, got)
		}
		if withheld && !strings.Contains(in, KeyAPIKey) {
			t.Errorf("%q does not ask for the API key", in)
		}
		if !either.MatchString(in) && got != in {
			t.Errorf("%q became %q", in, got)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add("#cloud-config\na: &x [*x]\nb: *y\n") // more are in testdata
	f.Fuzz(func(t *testing.T, in string) {
		if got := Check(in); len(got) > 200 {
			t.Errorf("a message of %d characters: %s", len(got), got)
		}
	})
}
