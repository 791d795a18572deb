package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// sorted checks that a predicate accepts some values and rejects others.
func sorted(t *testing.T, holds func(string) bool, accepted, rejected []string) {
	t.Helper()
	for _, value := range accepted {
		if !holds(value) {
			t.Errorf("%q is rejected", value)
		}
	}
	for _, value := range rejected {
		if holds(value) {
			t.Errorf("%q is accepted", value)
		}
	}
}

func TestIsHost(t *testing.T) {
	sorted(t, isHost,
		[]string{"192.0.2.1", "2001:db8::1", "::1", "example.com", "a", "xn--bcher-kva.example", "a-b.c"},
		[]string{"", "192.0.2.1:443", "[::1]", "https://example.com", "Example.com", "a_b", "-a", "a-", "bücher.example", "a b", "example.com.", "*.example.com", strings.Repeat("a", 254)})
}

func TestIsSAN(t *testing.T) {
	sorted(t, isSAN,
		[]string{"192.0.2.1", "2001:db8::1", "example.com", "*.example.com"},
		[]string{"", "*", "a.*.example.com", "example.com:443", "UPPER", "\x00"})
}

func TestIsPort(t *testing.T) {
	sorted(t, isPort,
		[]string{"1", "443", "65535"},
		[]string{"", "0", "65536", "-1", "+1", "0443", "443 ", "https", "4४", "99999999999999999999"})
}

func TestIsRegistry(t *testing.T) {
	sorted(t, isRegistry,
		[]string{"registry.example.com", "registry.example.com:5000", "192.0.2.1:5000", "localhost"},
		[]string{"", ":5000", "registry.example.com:", "registry.example.com:0", "registry.example.com/team", "https://registry.example.com", "a:1:2"})
}

func TestRegistryPath(t *testing.T) {
	sorted(t, registryPath.MatchString,
		[]string{"team", "team/images", "a-b/c_d/e.f", "a--b"},
		[]string{"", "/team", "team/", "Team", "team images", "ü", "-a"})
}

func TestCloudRegistry(t *testing.T) {
	sorted(t, cloudRegistry.MatchString,
		[]string{"123456789012.dkr.ecr.us-west-2.amazonaws.com"},
		[]string{"", "public.ecr.aws", "12345678901.dkr.ecr.us-west-2.amazonaws.com", "123456789012.dkr.ecr.us-west-2.amazonaws.com.evil.example", "x123456789012.dkr.ecr.us-west-2.amazonaws.com"})
}

func TestIsCertificate(t *testing.T) {
	sorted(t, isCertificate, nil, []string{
		"", "garbage", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	})
}

func TestIsPublicKey(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	sorted(t, isPublicKey,
		[]string{key, key + " developer@laptop", key + "\n", `command="ls" ` + key},
		[]string{"", "ssh-ed25519", "ssh-ed25519 AAAA", key + "\n" + key, "# " + key, "-----BEGIN OPENSSH PRIVATE KEY-----"})
}

func TestNames(t *testing.T) {
	for name, tt := range map[string]struct {
		holds              func(string) bool
		accepted, rejected []string
	}{
		"clusters": {
			clusterName.MatchString,
			[]string{"a", "prod-1", "a--b"},
			[]string{"", "1a", "-a", "a-", "A", "a_b", "a.b", "ä", "a\n"},
		},
		"users": {
			userName.MatchString,
			[]string{"a", "_svc", "developer-2", "a" + strings.Repeat("b", 31)},
			[]string{"", "1a", "-a", "Developer", "a.b", "a" + strings.Repeat("b", 32), "a\n"},
		},
		"flags": {
			flagName.MatchString,
			[]string{"v", "audit-log-maxage", "etcd3"},
			[]string{"", "--v", "-v", "v-", "a--b", "V", "a=b", "a b"},
		},
		"repositories": {
			repositoryName.MatchString,
			[]string{"fleet", "Fleet_1.0-x"},
			[]string{"", "team/fleet", "a b", "ü", "a?b"},
		},
		"minor versions": {
			minorVersion.MatchString,
			[]string{"1.0", "1.36", "1.9999"},
			[]string{"", "1", "1.", "1.036", "1.36.1", "v1.36", "2.1", "1.10000", " 1.36", "1.36\n"},
		},
		"destinations without proxy": {
			directHost.MatchString,
			[]string{".example.com", "*.example.com", "10.0.0.0/8", "fd00::/8", "localhost"},
			[]string{"", "a b", `"a"`, "100%", "a,b", "ä"},
		},
	} {
		t.Run(name, func(t *testing.T) { sorted(t, tt.holds, tt.accepted, tt.rejected) })
	}
}

func TestIsShare(t *testing.T) {
	for _, value := range []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(7), intstr.FromString("0%"), intstr.FromString("100%"), intstr.FromString("3")} {
		if !isShare(value) {
			t.Errorf("%s is rejected", value.String())
		}
	}
	for _, value := range []intstr.IntOrString{intstr.FromInt32(-1), intstr.FromString(""), intstr.FromString("%"), intstr.FromString("101%"), intstr.FromString("-5%"), intstr.FromString("half"), intstr.FromString("4294967296")} {
		if isShare(value) {
			t.Errorf("%s is accepted", value.String())
		}
	}
}

func TestDurationProblems(t *testing.T) {
	at := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tt := range map[string]struct {
		duration *metav1.Duration
		want     string
	}{
		"unset":        {nil, ""},
		"the least":    {at(time.Minute), ""},
		"the most":     {at(maxDuration), ""},
		"too short":    {at(time.Minute - 1), "p: must be at least 1m0s (write it as 1m0s or 10m)"},
		"negative":     {at(-time.Hour), "p: must be at least 1m0s (write it as 1m0s or 10m)"},
		"too long":     {at(maxDuration + 1), "p: must be at most ten years (use a shorter duration, such as 8760h)"},
		"the overflow": {at(1<<63 - 1), "p: must be at most ten years (use a shorter duration, such as 8760h)"},
	} {
		got := ""
		if problems := durationProblems(tt.duration, time.Minute, "p"); len(problems) > 0 {
			got = problems.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestBranchProblems(t *testing.T) {
	valid := func(branch string) bool { return len(branchProblems(branch, "spec.branch")) == 0 }
	sorted(t, valid,
		[]string{"", "main", "release/1.2", "a@b", "größe", "x.y"},
		[]string{"a..b", "a//b", "a@{b", "-a", "/a", "a/", "a.", "a.lock", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "a\x00", "a\n"})
}

func TestFolderProblems(t *testing.T) {
	valid := func(folder string) bool { return len(folderProblems(folder, "p")) == 0 }
	sorted(t, valid,
		[]string{"", "clusters", "clusters/prod", ".", "..a", "a b"},
		[]string{"/clusters", "clusters/", "a//b", "..", "../a", "a/../b", "./a"})
}

func TestProxyProblems(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://proxy.example.com:3128":                 "",
		"https://developer:secret@proxy.example.com:80": "",
		"http://proxy.example.com:3128/":                "",
		"192.0.2.1:3128":                                "",
		"[2001:db8::1]:3128":                            "",
		"":                                              "is not set",
		"ftp://proxy.example.com:21":                    "is not a valid proxy address",
		"http://proxy.example.com:3128/path":            "is not a valid proxy address",
		"http://proxy.example.com:3128?a=b":             "is not a valid proxy address",
		"http://proxy.example.com:3128#a":               "is not a valid proxy address",
		"http://%zz:3128":                               "is not a valid proxy address",
		"proxy.example.com":                             "must be a host and a port",
		"http://proxy.example.com":                      "must be a host and a port",
		"2001:db8::1:3128":                              "must be a host and a port",
		":3128":                                         "must be a host and a port",
		"proxy.example.com:0":                           "has an invalid port",
		"proxy.example.com:65536":                       "has an invalid port",
		"proxy.example.com:http":                        "has an invalid port",
	} {
		got := ""
		if problems := proxyProblems(proxy, "p"); len(problems) > 0 {
			got = problems[0].Problem
		}
		if got != want {
			t.Errorf("proxy %q: %q, want %q", proxy, got, want)
		}
	}
	if text := proxyProblems("http://developer:secret@", "p").Error(); strings.Contains(text, "secret") {
		t.Errorf("the password is quoted: %s", text)
	}
}

func TestChartValues(t *testing.T) {
	for name, tt := range map[string]struct {
		check     check
		good, bad []any
	}{
		"a text":        {mustBeText, []any{"a"}, []any{"", nil, 1, true, map[string]any{}}},
		"a directory":   {mustBeDirectory, []any{"/", "/etc/cni/net.d"}, []any{"", "etc", "/etc/", "/etc/../x", nil, 1}},
		"a pull policy": {mustBePullPolicy, []any{"Always", "IfNotPresent", "Never"}, []any{"", "always", nil, 1}},
		"quantities": {
			mustBeQuantities,
			[]any{map[string]any{}, map[string]any{"cpu": "100m", "memory": "128Mi"}, map[string]any{"cpu": 1}},
			[]any{nil, "100m", []any{"100m"}, map[string]any{"cpu": "much"}, map[string]any{"cpu": nil}},
		},
	} {
		for _, value := range tt.good {
			if must := tt.check(value); must != "" {
				t.Errorf("%s: %v must be %s", name, value, must)
			}
		}
		for _, value := range tt.bad {
			if tt.check(value) == "" {
				t.Errorf("%s: %v is accepted", name, value)
			}
		}
	}
}

func TestHelmValuesProblems(t *testing.T) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	for name, tt := range map[string]struct {
		cilium anywherev1.CiliumConfig
		want   []string
	}{
		"none":     {anywherev1.CiliumConfig{}, nil},
		"empty":    {anywherev1.CiliumConfig{HelmValues: raw("")}, nil},
		"null":     {anywherev1.CiliumConfig{HelmValues: raw("null")}, nil},
		"a string": {anywherev1.CiliumConfig{HelmValues: raw(`"x"`)}, []string{"is not an object"}},
		"valid":    {anywherev1.CiliumConfig{HelmValues: raw(`{"confDir":"/etc/cni","image":{"tag":"v1"},"resources":{"limits":{"cpu":"1"}}}`)}, nil},
		"every problem": {
			anywherev1.CiliumConfig{HelmValues: raw(`{"confDir":"x","image":7,"remove":true,"resources":{"limits":{"cpu":"?"},"claims":1}}`)},
			[]string{
				"the value must be an absolute path, such as /etc/cni/net.d", "the value must be an object",
				"the Pod network that Drover installs does not support this setting", "the Pod network that Drover installs does not support this setting",
				"the value must be quantities such as {cpu: 100m, memory: 128Mi}",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range helmValuesProblems(&tt.cilium, "v") {
				got = append(got, p.Problem)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesForAnotherCiliumAreBounded(t *testing.T) {
	for text, want := range map[string]string{
		`{"any":{"value":1}}`: "", "": "", `"x"`: "is not an object", `{"a":"` + strings.Repeat("x", maxHelmValues) + `"}`: "bytes, more than",
	} {
		got := ownValuesProblems(&anywherev1.CiliumConfig{HelmValues: &runtime.RawExtension{Raw: []byte(text)}}, "v")
		if len(got) > 1 || (len(got) == 0) != (want == "") || want != "" && !strings.Contains(got[0].Problem, want) {
			t.Errorf("%.20q: %v, want %q", text, got, want)
		}
	}
}

func TestAllowedOnNodes(t *testing.T) {
	sorted(t, allowedOnNodes,
		[]string{
			"team", "example.com/team", "kubernetes.io.example.com/x", "notkubernetes.io/x", corev1.LabelHostname, corev1.LabelTopologyZone,
			"node.kubernetes.io/x", "sub.node.kubernetes.io/x", "node-role.kubernetes.io/worker", "node-restriction.kubernetes.io/x",
		},
		[]string{"kubernetes.io/x", "app.kubernetes.io/name", "k8s.io/x", "sub.k8s.io/x", "topology.kubernetes.io/other", "evilnode.kubernetes.io/x"})
}

func TestTaintProblems(t *testing.T) {
	problems := taintProblems([]corev1.Taint{
		{Key: "a", Effect: corev1.TaintEffectNoSchedule},
		{Key: "a", Value: "other", Effect: corev1.TaintEffectNoSchedule},
		{Key: "a", Effect: corev1.TaintEffectNoExecute},
		{Key: "", Value: "not valid", Effect: "Never"},
	}, "t")
	want := []string{
		"t[1]: another taint has the same key and effect (keep one of them)",
		`t[3].key: "" is not a valid key (use a key such as example.com/dedicated)`,
		`t[3].value: "not valid" is not a valid value (use letters, digits, dashes, dots and underscores)`,
		`t[3].effect: "Never" is not an effect (use NoSchedule, PreferNoSchedule or NoExecute)`,
	}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func texts(problems Violations) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

func TestKubeletProblems(t *testing.T) {
	for name, tt := range map[string]struct {
		raw  string
		want []string
	}{
		"none":            {"", nil},
		"valid":           {`{"maxPods": 50, "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}`, nil},
		"no object":       {`[1]`, []string{"k: is not an object (write the fields of a KubeletConfiguration)"}},
		"the provider ID": {`{"providerID": "x"}`, []string{"k.providerID: can't be set (remove it: each machine has its own)"}},
		"another kind":    {`{"kind": "Pod"}`, []string{`k.kind: "Pod" is not supported (use KubeletConfiguration)`}},
		"a typo":          {`{"maxPod": 50}`, []string{"k.maxPod: unknown field (did you mean maxPods?)"}},
		"a wrong type":    {`{"maxPods": "50"}`, []string{"k.maxPods: is a string but must be an integer (write an integer)"}},
		"too large":       {`{"maxPods": 2147483648}`, []string{"k.maxPods: is a number but must be an integer within range (write an integer within range)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, texts(kubeletProblems(&runtime.RawExtension{Raw: []byte(tt.raw)}, "k"))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpgradeProblems(t *testing.T) {
	for _, tt := range []struct{ was, is, want string }{
		{"1.35", "1.35", ""},
		{"1.35", "1.36", ""},
		{"1.35", "1.34", "v: kubernetes version downgrade is not supported (1.35) -> (1.34) (use 1.35 or later)"},
		{"1.34", "1.36", "v: only +1 minor version skew is supported, minor version skew detected 2 (upgrade to 1.35 first)"},
		{"1.9", "1.10", ""},
		{"", "1.36", ""},
		{"1.35", "latest", ""},
	} {
		got := ""
		if problems := upgradeProblems(tt.was, tt.is, "v"); len(problems) > 0 {
			got = problems.Error()
		}
		if got != tt.want {
			t.Errorf("from %q to %q: %q, want %q", tt.was, tt.is, got, tt.want)
		}
	}
}

func TestEksaVersionSkew(t *testing.T) {
	for _, tt := range []struct {
		was, is    string
		failure    anywherev1.FailureReason
		annotation string
		allowed    bool
	}{
		{was: "v0.24.0", is: "v0.25.0", allowed: true},
		{was: "v0.25.1", is: "v0.25.0", allowed: true},
		{was: "v0.24.0", is: "v0.26.0"},
		{was: "v0.24.0", is: "v1.24.0"},
		{was: "v0.25.0", is: "v0.24.0"},
		{was: "v0.25.0", is: "v0.24.0", failure: anywherev1.EksaVersionInvalidReason, allowed: true},
		{was: "v0.25.0", is: "v0.20.0", annotation: "true", allowed: true},
		{was: "v0.25.0", is: "v0.20.0", annotation: "yes"},
		{was: "", is: "v0.20.0", allowed: true},
		{was: "v0.25.0", is: "0.20.0", allowed: true}, // another rule rejects it
	} {
		was, is := &anywherev1.Cluster{}, &anywherev1.Cluster{}
		was.Spec.EksaVersion, is.Spec.EksaVersion = tt.was, tt.is
		if tt.failure != "" {
			was.Status.FailureReason = &tt.failure
		}
		is.Annotations = map[string]string{anywherev1.SkipVersionSkewCheckAnnotation: tt.annotation}
		if problems := eksaVersionSkewRule(was, is); (len(problems) == 0) != tt.allowed {
			t.Errorf("%+v: %v", tt, problems)
		}
	}
}

func TestRelease(t *testing.T) {
	valid := func(version string) bool { return release(version) != nil }
	sorted(t, valid, []string{"v0.0.0", "v1.2.3", "v1.2.3-rc.1+build"}, []string{"", "v", "1.2.3", "v1.2", "v01.2.3", "vv1.2.3", "v1.2.3.4", "latest"})
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, other string
		want        bool
	}{
		{"spec.a", "spec.a", true},
		{"spec.a.b", "spec.a", true},
		{"spec.a[0]", "spec.a", true},
		{"spec.ab", "spec.a", false},
		{"spec", "spec.a", false},
		{"", "spec", false},
	} {
		if got := within(tt.path, tt.other); got != tt.want {
			t.Errorf("%q within %q: %t", tt.path, tt.other, got)
		}
	}
}

func TestParts(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"YAML":                      {"a: 1\n---\nb: 2\n", []string{"a: 1\n---\nb: 2\n"}},
		"one object":                {` {"a":1}`, []string{`{"a":1}`}},
		"concatenated objects":      {"{\"a\":1}{\"b\":2}\n{\"c\":3}", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}},
		"YAML that looks like JSON": {"{a: 1}", []string{"{a: 1}"}},
		"an object and garbage":     {`{"a":1} x`, []string{`{"a":1} x`}},
		"nothing":                   {"", []string{""}},
	} {
		var got []string
		for _, part := range parts([]byte(tt.in)) {
			got = append(got, string(part))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"plain":                       "plain",
		"größe ☃":                     "größe ☃",
		"a\nb":                        `"a\nb"`,
		"\x1b[31mred":                 `"\x1b[31mred"`,
		"a\xffb":                      "a\uFFFDb",
		strings.Repeat("x", 120):      strings.Repeat("x", 120),
		strings.Repeat("x", 121):      strings.Repeat("x", 117) + "…",
		strings.Repeat("é", 61):       strings.Repeat("é", 58) + "…",
		"x" + strings.Repeat("é", 60): "x" + strings.Repeat("é", 58) + "…",
	} {
		got := printable(in)
		if got != want {
			t.Errorf("%q is quoted as %q, want %q", in, got, want)
		}
		if utf8.ValidString(in) && !utf8.ValidString(got) {
			t.Errorf("%q is cut within a character", in)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"count", "certSans", "machineGroupRef"}
	for word, want := range map[string]string{
		"counts": "count", "Count": "count", "cuont": "", "certSANs": "certSans", "machinegroupref": "machineGroupRef", "machineGroupRfe": "machineGroupRef",
		"x": "", "": "", "entirely": "", strings.Repeat("c", 200): "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2},
	} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("the distance of %q and %q is %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if distance(tt.a, tt.b) != distance(tt.b, tt.a) {
			t.Errorf("the distance of %q and %q depends on the order", tt.a, tt.b)
		}
	}
}

func TestRemedyForKind(t *testing.T) {
	for kind, want := range map[string]string{
		"AWSIamConfig":            "authenticate users with an OIDCConfig or with certificates",
		"VSphereDatacenterConfig": supported,
		"TinkerbellMachineConfig": supported,
		"clusters":                "did you mean Cluster?",
		"OidcConfig":              "did you mean OIDCConfig?",
		"Deployment":              "use one of " + strings.Join(kinds, ", "),
		"":                        "use one of " + strings.Join(kinds, ", "),
	} {
		if got := remedyForKind(kind); got != want {
			t.Errorf("%q: got %q, want %q", kind, got, want)
		}
	}
}

func TestEveryKindHasATypeAndAName(t *testing.T) {
	for _, kind := range kinds {
		object := newObject(kind)
		if object == nil {
			t.Errorf("%s has no type", kind)
			continue
		}
		if got := kindOf(object); got != kind {
			t.Errorf("an object of kind %s is taken for a %q", kind, got)
		}
		object.SetName("x")
		c := &Config{}
		c.add(object)
		if all := c.Objects(); len(all) != 1 || all[0] != object {
			t.Errorf("a Config with a %s has objects %v", kind, all)
		}
	}
	if newObject("Deployment") != nil || kindOf(nil) != "" {
		t.Error("an unsupported kind is known")
	}
	for _, kind := range absentKinds {
		if slices.Contains(kinds, kind) {
			t.Errorf("%s is both supported and ignored", kind)
		}
	}
}

func TestSuggestion(t *testing.T) {
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("field%d-of-many", i))
	}
	for name, tt := range map[string]struct {
		key   string
		known []string
		want  string
	}{
		"similar":     {"mane", []string{"name", "kind"}, "remove it, or use one of kind, name"},
		"very close":  {"names", []string{"kind", "name"}, "did you mean name?"},
		"a few":       {"zzz", []string{"b", "a"}, "remove it, or use one of a, b"},
		"none":        {"zzz", nil, "remove it"},
		"a lot":       {"zzz", many, "remove it"},
		"another set": {"NAME", []string{"name"}, "did you mean name?"},
	} {
		if got := suggestion(tt.key, tt.known); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestViolationText(t *testing.T) {
	for want, v := range map[string]Violation{
		"p: wrong (do it)": {Path: "p", Problem: "wrong", Remedy: "do it"},
		"wrong (do it)":    {Problem: "wrong", Remedy: "do it"},
		"p: wrong":         {Path: "p", Problem: "wrong"},
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var none Violations
	if none.Err() != nil || none.Error() != "no problems" {
		t.Errorf("no violations are an error: %v, %q", none.Err(), none.Error())
	}
	two := Violations{{Problem: "a"}, {Problem: "b"}}
	if got, want := two.Err().Error(), "2 problems found:\n  - a\n  - b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := append(make(Violations, maxListed), two...).Error(); !strings.HasSuffix(got, "\n  and 2 more") {
		t.Errorf("the list is not bounded: it ends with %q", got[len(got)-40:])
	}
}
