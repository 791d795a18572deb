package desired

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

func TestSetDefaults(t *testing.T) {
	hour := &metav1.Duration{Duration: time.Hour}
	for name, tt := range map[string]struct {
		in, want addonsv1.HelmChartProxySpec
	}{
		"an empty spec": {
			want: addonsv1.HelmChartProxySpec{ReleaseNamespace: "default", Options: addonsv1.HelmOptions{Timeout: &metav1.Duration{Duration: addonsv1.DefaultTimeout}}},
		},
		"values are kept": {
			in:   addonsv1.HelmChartProxySpec{ReleaseNamespace: "shop", Options: addonsv1.HelmOptions{Timeout: hour}},
			want: addonsv1.HelmChartProxySpec{ReleaseNamespace: "shop", Options: addonsv1.HelmOptions{Timeout: hour}},
		},
		"who wants all or nothing waits": {
			in:   addonsv1.HelmChartProxySpec{ReleaseNamespace: "shop", Options: addonsv1.HelmOptions{Timeout: hour, Atomic: true}},
			want: addonsv1.HelmChartProxySpec{ReleaseNamespace: "shop", Options: addonsv1.HelmOptions{Timeout: hour, Atomic: true, Wait: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &addonsv1.HelmChartProxy{Spec: tt.in}
			for range 2 { // defaults are idempotent
				SetDefaults(c)
				if diff := cmp.Diff(tt.want, c.Spec); diff != "" {
					t.Errorf("spec (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestCompileReportsEveryProblem(t *testing.T) {
	spec := &addonsv1.HelmChartProxySpec{
		ValuesTemplate: "{{ .Cluster",
		Orchestration: addonsv1.Orchestration{
			VersionTemplate: "{{ now }}",
			Versions:        []addonsv1.VersionRule{{Kubernetes: ">= 1.35", Version: "1"}, {Kubernetes: "new", Version: "2"}, {Kubernetes: " ", Version: "3"}},
			ValuesFrom:      []addonsv1.ValuesSource{{Name: "ok"}, {Name: "{{ uuidv4 }}"}},
			Overrides: []addonsv1.Override{
				{ClusterSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}, ValuesTemplate: "{{ if }}"},
			},
		},
	}
	program, problems := Compile(spec)
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Field)
		if strings.Contains(p.Error(), "{{") {
			t.Errorf("a template is quoted, which may hold a secret: %v", p)
		}
	}
	want := []string{
		"spec.valuesTemplate", "spec.versionTemplate", "spec.versions[1].kubernetes", "spec.versions[2].kubernetes", "spec.valuesFrom[1].name",
		"spec.overrides[0].clusterSelector", "spec.overrides[0].valuesTemplate",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if program == nil {
		t.Error("got no program, want one for the valid part of the spec")
	}
}

func TestDigest(t *testing.T) {
	for name, pair := range map[string][2][]string{
		"another part":        {{"a", "b"}, {"a", "c"}},
		"another border":      {{"ab", "c"}, {"a", "bc"}},
		"an empty part":       {{"a"}, {"a", ""}},
		"another order":       {{"a", "b"}, {"b", "a"}},
		"a line break within": {{"a\n1 b"}, {"a", "b"}},
	} {
		if digest(pair[0]...) == digest(pair[1]...) {
			t.Errorf("%s does not change the digest", name)
		}
	}
	if got := digest("a"); len(got) != 16 || got != digest("a") {
		t.Errorf("digest %q", got)
	}
}

func TestSanitizeName(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "cni": "cni", "My_Chart.v1": "my-chart-v1", "--a--": "a", "größe": "gr-e", "☃": "", "a/b/c": "a-b-c",
	} {
		if got := sanitizeName(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestTruncateName(t *testing.T) {
	for _, tt := range []struct {
		text    string
		longest int
		want    string
	}{
		{"web", 20, "web-sum"},
		{"", 20, "release-sum"},
		{"---", 20, "release-sum"},
		{"abcdefghij", 9, "abcde-sum"},
		{"abcd-fghij", 9, "abcd-sum"},
	} {
		if got := truncateName(tt.text, tt.longest, "sum"); got != tt.want {
			t.Errorf("%q within %d: %q, want %q", tt.text, tt.longest, got, tt.want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("cni", "chart", "cluster")
	f.Add("", "", "")
	f.Add("oci://Registry.Example.com/Ünïcode_chart.tgz", strings.Repeat("x", 300), "a.b")
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, chartName, chart, cluster string) {
		object, release := objectName(chartName, chart, cluster), releaseName(chartName, ctrlclient.ObjectKey{Name: chart}, cluster)
		if !valid.MatchString(object) || len(object) > 63 {
			t.Errorf("%q is not the name of an object", object)
		}
		if !valid.MatchString(release) || len(release) > 53 {
			t.Errorf("%q is not the name of a release", release)
		}
		if object == objectName(chartName, chart+"x", cluster) {
			t.Errorf("two charts have object %q", object)
		}
	})
}

func TestMissingError(t *testing.T) {
	err := &MissingError{schema.GroupVersionKind{Kind: "KubeadmControlPlane"}, "dev"}
	if got, want := err.Error(), `waiting for KubeadmControlPlane "dev", which a template refers to`; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestVariablesThatCannotBeParsed(t *testing.T) {
	c := cluster(nil)
	c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "size", Value: apiextensionsv1.JSON{Raw: []byte("{hunter22")}}}
	_, err := Facts{Cluster: c}.data()
	if err == nil || !strings.Contains(err.Error(), `cluster "a"`) || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("error %v does not name the cluster, or quotes the value", err)
	}
}

func TestRenderingErrorsNameTheField(t *testing.T) {
	for want, spec := range map[string]addonsv1.HelmChartProxySpec{
		"rendering values: ":                  {ValuesTemplate: `{{ fail "no" }}`},
		"rendering spec.versionTemplate: ":    {Orchestration: addonsv1.Orchestration{VersionTemplate: `{{ fail "no" }}`}},
		"rendering spec.valuesFrom[0].name: ": {Orchestration: addonsv1.Orchestration{ValuesFrom: []addonsv1.ValuesSource{{Name: `{{ fail "no" }}`}}}},
	} {
		_, err := release(t, spec, Facts{Cluster: cluster(nil)})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want one that begins with %q", err, want)
		}
	}
	merged := addonsv1.HelmChartProxySpec{ValuesTemplate: "- a", Orchestration: addonsv1.Orchestration{Overrides: []addonsv1.Override{{ValuesTemplate: "a: b"}}}}
	if _, err := release(t, merged, Facts{Cluster: cluster(nil)}); err == nil || !strings.HasPrefix(err.Error(), "merging spec.valuesTemplate and spec.overrides: ") {
		t.Errorf("error %v for values that can't be merged", err)
	}
}

func TestRandomValuesAreKeptUntilTheirInputChanges(t *testing.T) {
	spec := addonsv1.HelmChartProxySpec{ValuesTemplate: `password: {{ randAlphaNum 16 }}{{ .Cluster.metadata.labels.tier }}`}
	facts := Facts{Cluster: cluster(map[string]string{"tier": "gold"})}
	first, err := release(t, spec, facts)
	if err != nil || first.StableDigest == "" {
		t.Fatalf("release %+v, error %v", first, err)
	}
	facts.Release = &addonsv1.HelmReleaseProxy{Spec: first.Spec}
	facts.Release.Annotations = map[string]string{addonsv1.StillValuesAnnotation: first.StableDigest}
	second, err := release(t, spec, facts)
	if err != nil || second.Spec.Values != first.Spec.Values {
		t.Errorf("values %q, then %q, error %v", first.Spec.Values, second.Spec.Values, err)
	}
	facts.Cluster = cluster(map[string]string{"tier": "tin"})
	third, err := release(t, spec, facts)
	if err != nil || third.Spec.Values == first.Spec.Values || third.StableDigest == first.StableDigest {
		t.Errorf("got values %q after the cluster changed, error %v", third.Spec.Values, err)
	}
}
