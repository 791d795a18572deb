package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
)

var chart = ctrlclient.ObjectKey{Namespace: "ns", Name: "cni"}

func cluster(labels map[string]string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: labels}}
}

func controlPlane(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func release(t *testing.T, spec addonsv1.HelmChartProxySpec, f Facts) (Release, error) {
	t.Helper()
	p, problems := Compile(&spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p.For(chart, f)
}

func on(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func TestSelectVersion(t *testing.T) {
	rules := []addonsv1.VersionRule{{Kubernetes: ">= 1.35, < 1.36", Version: "35"}, {Kubernetes: ">= 1.36", Version: "36"}}
	overrides := []addonsv1.Override{
		{ClusterSelector: on("tier", "gold"), Version: "gold"},
		{ClusterSelector: on("zone", "z"), Version: "z"},
		{ClusterSelector: on("tier", "gold"), ValuesTemplate: "a: b"},
	}
	topology := func(version string) Facts {
		c := cluster(nil)
		c.Spec.Topology.Version = version
		return Facts{Cluster: c}
	}
	for _, tc := range []struct {
		name  string
		spec  addonsv1.HelmChartProxySpec
		facts Facts
		want  string
		err   string
	}{
		{name: "none", facts: topology(""), want: ""},
		{name: "the one for all", spec: addonsv1.HelmChartProxySpec{Version: "1"}, facts: topology("v1.36.1"), want: "1"},
		{name: "of the template", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{VersionTemplate: " {{ .Cluster.spec.topology.version }} \n"}}, facts: topology("v1.36.1"), want: "v1.36.1"},
		{name: "by rule, before the template", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{Versions: rules, VersionTemplate: "2"}}, facts: topology("v1.35.9"), want: "35"},
		{name: "by rule, with a build", spec: addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: topology("v1.36.0+fips.1"), want: "36"},
		{name: "by rule, before its release", spec: addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: topology("v1.36.0-rc.1"), want: "36"},
		{name: "no rule for it", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: topology("v1.34.0"), want: "1"},
		{name: "by rule, of the control plane", spec: addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: Facts{Cluster: cluster(nil), ControlPlane: controlPlane(map[string]any{"spec": map[string]any{"version": "v1.35.0"}, "status": map[string]any{"version": "v1.36.0"}})}, want: "35"},
		{name: "by rule, of the control plane's status", spec: addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: Facts{Cluster: cluster(nil), ControlPlane: controlPlane(map[string]any{"status": map[string]any{"version": "v1.36.0"}})}, want: "36"},
		{name: "unknown version of Kubernetes", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: topology(""), err: "neither the topology nor the control plane of the cluster has one"},
		{name: "strange version of Kubernetes", spec: addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Versions: rules}}, facts: topology("new"), err: `parsing Kubernetes version "new"`},
		{name: "overridden", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{Versions: rules, Overrides: overrides}}, facts: Facts{Cluster: cluster(map[string]string{"tier": "gold"})}, want: "gold"},
		{name: "overridden twice", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{Overrides: overrides}}, facts: Facts{Cluster: cluster(map[string]string{"tier": "gold", "zone": "z"})}, want: "z"},
		{name: "not overridden", spec: addonsv1.HelmChartProxySpec{Version: "1", Orchestration: addonsv1.Orchestration{Overrides: overrides}}, facts: Facts{Cluster: cluster(map[string]string{"tier": "tin"})}, want: "1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := release(t, tc.spec, tc.facts)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || got.Spec.Version != tc.want {
				t.Errorf("version is %q, %v, want %q", got.Spec.Version, err, tc.want)
			}
		})
	}
}

func TestValuesWithoutOverridesAreTheTemplate(t *testing.T) {
	spec := addonsv1.HelmChartProxySpec{ChartName: "x", ValuesTemplate: "b:   1 # why\na: {{ .Cluster.metadata.name }}\n\n"}
	spec.Overrides = []addonsv1.Override{
		{ClusterSelector: on("tier", "gold"), ValuesTemplate: "replicas: {{ .Variables.replicas }}"},
		{ClusterSelector: on("tier", "gold"), ValuesTemplate: "a: null"},
	}
	plain, err := release(t, spec, Facts{Cluster: cluster(nil)})
	if err != nil || plain.Spec.Values != "b:   1 # why\na: a\n\n" {
		t.Errorf("values are %q, %v", plain.Spec.Values, err)
	}
	gold := cluster(map[string]string{"tier": "gold"})
	gold.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "replicas", Value: apiextensionsv1.JSON{Raw: []byte("1000000")}}}
	changed, err := release(t, spec, Facts{Cluster: gold})
	if err != nil || changed.Spec.Values != "a: null\nb: 1\nreplicas: 1000000\n" {
		t.Errorf("values are %q, %v", changed.Spec.Values, err)
	}
}

func TestSourceNamesAreTemplates(t *testing.T) {
	spec := addonsv1.HelmChartProxySpec{ChartName: "x"}
	spec.ValuesFrom = []addonsv1.ValuesSource{
		{Kind: "ConfigMap", Name: "all"}, {Kind: "Secret", Name: "{{ .Cluster.metadata.name }}-values", Key: "v", Optional: true},
	}
	got, err := release(t, spec, Facts{Cluster: cluster(nil)})
	if err != nil {
		t.Fatal(err)
	}
	want := []addonsv1.ValuesSource{{Kind: "ConfigMap", Name: "all", Key: "values.yaml"}, {Kind: "Secret", Name: "a-values", Key: "v", Optional: true}}
	if diff := cmp.Diff(want, got.Spec.ValuesFrom); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestDesiredSpecIsACopy(t *testing.T) {
	spec := addonsv1.HelmChartProxySpec{
		ChartName: "x", Credentials: &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "s"}},
		TLSConfig: &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}},
	}
	before := spec.DeepCopy()
	got, err := release(t, spec, Facts{Cluster: cluster(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*before, spec); diff != "" {
		t.Errorf("the user's spec (-before +after):\n%s", diff)
	}
	if got.Spec.Credentials.Key != "config.json" || got.Spec.Credentials.Secret.Namespace != "ns" || got.Spec.TLSConfig.CASecretRef.Namespace != "ns" {
		t.Errorf("release: %+v", got.Spec)
	}
}

func TestOnlyReferencedObjectsAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		spec addonsv1.HelmChartProxySpec
		want template.Uses
	}{
		"nothing":        {addonsv1.HelmChartProxySpec{ValuesTemplate: "a: b"}, template.Uses{}},
		"in an override": {addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Overrides: []addonsv1.Override{{ValuesTemplate: "{{ .InfraCluster.spec }}"}}}}, template.Uses{InfraCluster: template.Use{Any: true}}},
		"in a name":      {addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{ValuesFrom: []addonsv1.ValuesSource{{Name: "{{ .ControlPlane.spec.x }}"}}}}, template.Uses{ControlPlane: template.Use{Any: true}}},
		"in a version":   {addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{VersionTemplate: "{{ .Cluster.status.x }}"}}, template.Uses{Cluster: template.Use{Any: true, Status: true}}},
		"by its version": {addonsv1.HelmChartProxySpec{Orchestration: addonsv1.Orchestration{Versions: []addonsv1.VersionRule{{Kubernetes: "1.x"}}}}, template.Uses{Cluster: template.Use{Any: true}, ControlPlane: template.Use{Any: true, Status: true}}},
	} {
		p, problems := Compile(&tc.spec)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if diff := cmp.Diff(tc.want, p.Uses()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNamesAreValidAndStable(t *testing.T) {
	for _, tc := range []struct{ chart, cluster string }{
		{"cilium", "a"}, {"a/b/c", "a"}, {"UPPER_case.v1", "a"}, {"...", "a"}, {strings.Repeat("x", 200), strings.Repeat("y", 63)},
	} {
		name, again := objectName(tc.chart, "cni", tc.cluster), objectName(tc.chart, "cni", tc.cluster)
		if name != again || len(name) > 63 || name != sanitizeName(name) {
			t.Errorf("%q on %q is called %q, then %q", tc.chart, tc.cluster, name, again)
		}
		installed := releaseName(tc.chart, chart, tc.cluster)
		if len(installed) > 53 || installed != sanitizeName(installed) {
			t.Errorf("%q on %q is installed as %q", tc.chart, tc.cluster, installed)
		}
		if name == objectName(tc.chart, "other", tc.cluster) || installed == releaseName(tc.chart, ctrlclient.ObjectKey{Namespace: "ns", Name: "other"}, tc.cluster) {
			t.Errorf("two HelmChartProxies share the name %q or %q", name, installed)
		}
	}
}
