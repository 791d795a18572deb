package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Data {
	return Data{
		Cluster: map[string]any{
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"zone": "z"}},
			"spec":     map[string]any{"clusterNetwork": map[string]any{"pods": map[string]any{"cidrBlocks": []any{"10.0.0.0/16"}}}},
		},
		ControlPlane: map[string]any{"spec": map[string]any{"version": "v1.36.0"}},
		Variables:    map[string]any{"replicas": int64(3), "tier": map[string]any{"name": "gold"}},
	}
}

func render(t *testing.T, text string) string {
	t.Helper()
	parsed, err := Parse("valuesTemplate", text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := parsed.Render(example())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTemplatesSeeTheClusterAndItsVariables(t *testing.T) {
	for text, want := range map[string]string{
		`name: {{ .Cluster.metadata.name }}`:                                                                 "name: a",
		`{{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}`:                                         "10.0.0.0/16",
		`{{ .Variables.replicas }} {{ .Variables.tier.name | upper | quote }}`:                               `3 "GOLD"`,
		`{{ .ControlPlane.spec.version }} {{ .Cluster.missing }}`:                                            "v1.36.0 <no value>",
		`{{ toYaml .Cluster.metadata.labels }}`:                                                              "zone: z",
		`{{ (fromYaml "a: {b: 1}").a.b }} {{ (fromYaml "- a").Error }}`:                                      "1 not a YAML object",
		`{{ index (fromYamlArray "[1, 2]") 1 }} {{ index (fromJsonArray "[7]") 0 }}`:                         "2 7",
		`{{ (mustFromYaml "a: b").a }}{{ mustToYaml (dict "k" (list 1 2)) }}`:                                "bk:\n- 1\n- 2",
		`{{ toJson .Variables.tier }}{{ (fromJson "{\"a\":1}").a }}`:                                         `{"name":"gold"}1`,
		"{{ indent 2 \"a\\nb\" }}{{ nindent 1 \"c\" }}":                                                      "  a\n  b\n c",
		`{{ until 3 }}{{ untilStep 4 0 -2 }}{{ seq 3 }}|{{ seq 2 0 }}|{{ seq 0 2 5 }}`:                       "[0 1 2][4 2]1 2 3|2 1 0|0 2 4",
		`{{ keys (dict "b" 1 "a" 2 "c" 3) }}{{ values (dict "b" 1 "a" 2) }}`:                                 "[a b c][2 1]",
		`{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" "y" }}{{ range $i := until 2 }}{{ $i }}{{ end }}`: "<y>01",
	} {
		if got := render(t, text); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestTemplatesCannotAccessTheHost(t *testing.T) {
	for _, name := range []string{`env "HOME"`, `expandenv "$HOME"`, `getHostByName "localhost"`} {
		if _, err := Parse("valuesTemplate", "{{ "+name+" }}"); err == nil {
			t.Errorf("%s can be called", name)
		}
	}
}

func TestErrorsNameTheLineButNoValues(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"broken", "a: 1\nb: {{ .Cluster.", "valuesTemplate:2:"},
		{"unknown function", "\n\n{{ nothing }}", `valuesTemplate:3: function "nothing" not defined`},
		{"author's words", `{{ fail "give the cluster a zone" }}`, "give the cluster a zone"},
		{"required", `x: {{ required "no zone" .Cluster.nothing }}`, "no zone"},
		{"a function's words", "a: 1\n{{ mustDateModify \"canary-7\" now }}", "valuesTemplate:2:3: executing \"valuesTemplate\" at <mustDateModify \"canary-7\" now>: error calling mustDateModify"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parsed, err := Parse("valuesTemplate", tc.text)
			if err == nil {
				_, err = parsed.Render(example())
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
	parsed, err := Parse("valuesTemplate", `{{ mustDateModify .Variables.secret now }}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = parsed.Render(Data{Variables: map[string]any{"secret": "canary-7"}}); err == nil || strings.Contains(err.Error(), "canary-7") {
		t.Errorf("error is %v", err)
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"a loop without a body":    `{{ range 9223372036854775807 }}{{ end }}`,
		"a loop with a call":       `{{ range 9223372036854775807 }}{{ $x := add 1 1 }}{{ end }}`,
		"nested loops":             `{{ range 10000 }}{{ range 10000 }}{{ if true }}{{ end }}{{ end }}{{ end }}`,
		"much text":                `{{ range 100000 }}0123456789abcdef{{ end }}`,
		"repeat":                   `{{ repeat 1000000000 "x" }}`,
		"repeat of repeat":         `{{ repeat 1000 (repeat 1000 (repeat 1000 "x")) }}`,
		"until":                    `{{ until 1000000000 }}`,
		"a step past the last int": `{{ untilStep 0 9223372036854775807 9223372036854775 | len }}{{ until 9223372036854775807 }}`,
		"seq":                      `{{ seq 1 1000000000 }}`,
		"indent":                   `{{ indent 1000000000 "x" }}`,
		"random":                   `{{ randAlphaNum 1000000000 }}`,
		"random bytes":             `{{ randBytes 1000000000 }}`,
		"doubled text":             `{{ $x := "x" }}{{ range 64 }}{{ $x = print $x $x }}{{ end }}`,
		"doubled list":             `{{ $x := list 1 }}{{ range 64 }}{{ $x = concat $x $x }}{{ end }}`,
		"doubled map":              `{{ $x := dict }}{{ range 64 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toYaml $x }}`,
		"a map in itself":          `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toJson $x }}`,
		"a deep map":               `{{ $x := dict }}{{ range 100000 }}{{ $x = dict "a" $x }}{{ end }}{{ toJson $x }}`,
		"every letter replaced":    `{{ $x := repeat 100000 "x" }}{{ replace "x" $x $x | len }}`,
		"joined by something long": `{{ join (repeat 100000 "x") (until 100000) | len }}`,
		"templates calling both":   `{{ define "x" }}{{ template "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`,
		"an escape of an escape":   `{{ $x := "<" }}{{ range 30 }}{{ $x = html $x }}{{ $x = print $x $x }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse("valuesTemplate", text)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := parsed.Render(example()); err == nil {
				t.Errorf("it rendered %d bytes", len(out))
			}
		})
	}
}

func TestOneRenderingDoesNotChangeTheDataOfTheNext(t *testing.T) {
	d := example()
	parsed, err := Parse("valuesTemplate", `{{ $_ := set .Cluster.metadata "name" "other" }}{{ $_ := unset .Variables "tier" }}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Render(d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), d); diff != "" {
		t.Errorf("data after rendering (-want +got):\n%s", diff)
	}
}

func TestStableDigestIgnoresRandomValues(t *testing.T) {
	digest := func(text, name string) string {
		t.Helper()
		parsed, err := Parse("valuesTemplate", text)
		if err != nil {
			t.Fatal(err)
		}
		d := example()
		d.Cluster["metadata"].(map[string]any)["name"] = name
		return parsed.StableDigest(d)
	}
	for _, text := range []string{
		`{{ now }}`, `{{ now | date "15:04:05.000000" }}`, `{{ date "15:04:05.000000" "no time" }}`, `{{ htmlDate nil }}`, `{{ ago now }}`,
		`{{ dateInZone "2006" now "UTC" }}`, `{{ now | unixEpoch }}`, `{{ now | dateModify "1h" }}`,
		`{{ randAlphaNum 8 }}`, `{{ randAlpha 8 }}`, `{{ randAscii 8 | quote }}`, `{{ randNumeric 3 | atoi }}`, `{{ randBytes 8 }}`, `{{ randInt 1 9 }}`,
		`{{ uuidv4 }}`, `{{ shuffle "abcdefgh" }}`, `{{ bcrypt "x" }}`, `{{ htpasswd "u" "p" }}`, `{{ encryptAES "k" "x" }}`,
		`{{ genPrivateKey "ecdsa" }}`, `{{ $ca := genCA "ca" 1 }}{{ (genSignedCert "x" nil nil 1 $ca).Cert }}{{ $ca.Key }}`,
		`{{ (genSelfSignedCert "x" nil nil 1).Key }}`, `{{ decryptAES "k" (encryptAES "k" "x") }}`,
	} {
		parsed, err := Parse("valuesTemplate", text)
		if err != nil {
			t.Fatal(err)
		}
		if !parsed.Volatile() {
			t.Errorf("%s is not taken for volatile", text)
		}
		text += `{{ .Cluster.metadata.name }}`
		if first, second := digest(text, "a"), digest(text, "a"); first != second {
			t.Errorf("%s differs from time to time", text)
		}
		if digest(text, "a") == digest(text, "b") {
			t.Errorf("%s is the same for two clusters", text)
		}
		if digest(text, "a") == digest(text+" ", "a") {
			t.Errorf("%s is the same as another template", text)
		}
	}
	if parsed, err := Parse("valuesTemplate", `{{ .Cluster.metadata.name | upper }}`); err != nil || parsed.Volatile() {
		t.Errorf("a plain template is taken for volatile: %v", err)
	}
}

func TestUsedVariables(t *testing.T) {
	all := Uses{Use{true, true}, Use{true, true}, Use{true, true}}
	for text, want := range map[string]Uses{
		`plain`:                                                               {},
		`{{ .Cluster.metadata.name }}`:                                        {Cluster: Use{Any: true}},
		`{{ .Cluster.status.phase }}`:                                         {Cluster: Use{true, true}},
		`{{ with .Cluster }}{{ .spec }}{{ end }}`:                             {Cluster: Use{true, true}},
		`{{ .Variables.x }}`:                                                  {Cluster: Use{Any: true}},
		`{{ if .ControlPlane.spec.version }}{{ end }}`:                        {ControlPlane: Use{Any: true}},
		`{{ (index .InfraCluster.spec.x 0).y | upper }}`:                      {InfraCluster: Use{Any: true}},
		`{{ toYaml . }}`:                                                      all,
		`{{ $x := $ }}{{ $x.ControlPlane }}`:                                  all,
		`{{ index . "ControlPlane" }}`:                                        all,
		`{{ define "x" }}{{ .ControlPlane }}{{ end }}{{ template "x" . }}`:    all,
		`{{ define "x" }}{{ .ControlPlane }}{{ end }}{{ template "x" dict }}`: {},
		`{{ range .Cluster.spec.x }}{{ . }}{{ .ControlPlane }}{{ $.InfraCluster.spec }}{{ end }}`: {
			Cluster: Use{Any: true}, InfraCluster: Use{Any: true},
		},
	} {
		parsed, err := Parse("valuesTemplate", text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, parsed.Uses()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestEmptyTemplateIsEmpty(t *testing.T) {
	for _, text := range []string{"", "   ", "{{/* words */}}", `{{ define "x" }}{{ end }}`} {
		if got := strings.TrimSpace(render(t, text)); got != "" {
			t.Errorf("%q is %q", text, got)
		}
	}
}
