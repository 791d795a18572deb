package admission

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func good() *addonsv1.HelmChartProxy {
	return &addonsv1.HelmChartProxy{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"},
		Spec:       addonsv1.HelmChartProxySpec{ChartName: "x", RepoURL: "https://charts.example.com"},
	}
}

func TestInvalidObjectsAreRejected(t *testing.T) {
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
	for _, tc := range []struct {
		name   string
		change func(*addonsv1.HelmChartProxySpec)
		want   string // in the error; empty if it is accepted
	}{
		{"nothing", func(*addonsv1.HelmChartProxySpec) {}, ""},
		{"https in capitals", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "HTTPS://charts.example.com" }, ""},
		{"oci", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "oci://registry.example.com/charts" }, ""},
		{"oci in capitals", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "OCI://registry.example.com/charts" }, "spec.repoURL"},
		{"http", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "http://charts.example.com" }, "spec.repoURL: Invalid value"},
		{"a file", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "file:///charts" }, "spec.repoURL"},
		{"a path", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "/charts" }, "spec.repoURL"},
		{"no host", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "https://:443/x" }, "spec.repoURL"},
		{"nothing of a URL", func(s *addonsv1.HelmChartProxySpec) { s.RepoURL = "" }, "spec.repoURL"},
		{"a selector", func(s *addonsv1.HelmChartProxySpec) { s.ClusterSelector = bad }, "spec.clusterSelector"},
		{"a template", func(s *addonsv1.HelmChartProxySpec) { s.ValuesTemplate = "a:\n  b: {{ .X" }, "spec.valuesTemplate: Invalid value: valuesTemplate:2:"},
		{"a template of versions", func(s *addonsv1.HelmChartProxySpec) { s.VersionTemplate = "{{ nothing }}" }, `spec.versionTemplate: Invalid value: versionTemplate:1: function "nothing" not defined`},
		{"a random version", func(s *addonsv1.HelmChartProxySpec) { s.VersionTemplate = "{{ randInt 1 9 }}" }, "spec.versionTemplate: Forbidden"},
		{"a template of names", func(s *addonsv1.HelmChartProxySpec) {
			s.ValuesFrom = []addonsv1.ValuesSource{{Kind: "Secret", Name: "ok"}, {Kind: "Secret", Name: "{{"}}
		}, "spec.valuesFrom[1].name"},
		{"a range", func(s *addonsv1.HelmChartProxySpec) {
			s.Versions = []addonsv1.VersionRule{{Kubernetes: ">= 1.35, < 1.37", Version: "1"}, {Kubernetes: "new", Version: "2"}}
		}, `spec.versions[1].kubernetes: Invalid value: "new"`},
		{"an override", func(s *addonsv1.HelmChartProxySpec) {
			s.Overrides = []addonsv1.Override{{ClusterSelector: bad, ValuesTemplate: "{{ end }}"}}
		}, "spec.overrides[0].valuesTemplate"},
		{"an override's selector", func(s *addonsv1.HelmChartProxySpec) { s.Overrides = []addonsv1.Override{{ClusterSelector: bad}} }, "spec.overrides[0].clusterSelector"},
		{"an empty wave", func(s *addonsv1.HelmChartProxySpec) {
			s.Rollout = &addonsv1.Rollout{Waves: []addonsv1.Wave{{Size: ptr.To(intstr.FromInt32(1))}, {}}}
		}, "spec.rollout.waves[1]: Required"},
		{"a wave's selector", func(s *addonsv1.HelmChartProxySpec) {
			s.Rollout = &addonsv1.Rollout{Waves: []addonsv1.Wave{{ClusterSelector: &bad}}}
		}, "spec.rollout.waves[0].clusterSelector"},
		{"a wave of none", func(s *addonsv1.HelmChartProxySpec) {
			s.Rollout = &addonsv1.Rollout{Waves: []addonsv1.Wave{{Size: ptr.To(intstr.FromInt32(0))}}}
		}, "spec.rollout.waves[0].size"},
		{"more than all", func(s *addonsv1.HelmChartProxySpec) {
			s.Rollout = &addonsv1.Rollout{MaxUnavailable: ptr.To(intstr.FromString("101%"))}
		}, "spec.rollout.maxUnavailable"},
		{"a part that is none", func(s *addonsv1.HelmChartProxySpec) {
			s.Rollout = &addonsv1.Rollout{MaxUnavailable: ptr.To(intstr.FromString("half"))}
		}, "spec.rollout.maxUnavailable"},
		{"a pause before the first failure", func(s *addonsv1.HelmChartProxySpec) { s.Rollout = &addonsv1.Rollout{PauseAfter: ptr.To[int32](0)} }, "spec.rollout.pauseAfter"},
		{"a path to ignore", func(s *addonsv1.HelmChartProxySpec) {
			s.Drift = &addonsv1.Drift{Ignore: []addonsv1.IgnoreRule{{Paths: []string{"/spec/replicas", "/metadata/annotations/a~1b", "spec.replicas"}}}}
		}, `spec.drift.ignore[0].paths[2]: Invalid value: "spec.replicas"`},
		{"nothing to ignore", func(s *addonsv1.HelmChartProxySpec) { s.Drift = &addonsv1.Drift{Ignore: []addonsv1.IgnoreRule{{}}} }, "spec.drift.ignore[0].paths: Required"},
		{"good health", func(s *addonsv1.HelmChartProxySpec) {
			s.Health = []addonsv1.HealthCheck{{Current: `self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`, Failed: "has(self.status.error)"}}
		}, ""},
		{"health that is no expression", func(s *addonsv1.HelmChartProxySpec) { s.Health = []addonsv1.HealthCheck{{Current: "self."}} }, "spec.health[0].current"},
		{"health of a number", func(s *addonsv1.HelmChartProxySpec) {
			s.Health = []addonsv1.HealthCheck{{Current: "true", Failed: "1 + 1"}}
		}, "spec.health[0].failed"},
		{"health of something unknown", func(s *addonsv1.HelmChartProxySpec) { s.Health = []addonsv1.HealthCheck{{Current: "object.x"}} }, "spec.health[0].current"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := good()
			tc.change(&c.Spec)
			_, err := (&chartRules{}).ValidateCreate(t.Context(), c)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
			was := c.DeepCopy()
			was.Finalizers = []string{"x"}
			if _, err := (&chartRules{}).ValidateUpdate(t.Context(), was, c); err != nil {
				t.Errorf("removing the finalizer: got error %v, want none", err)
			}
		})
	}
}

func TestPlainHTTPRequiresManagerOption(t *testing.T) {
	c, r := good(), &addonsv1.HelmReleaseProxy{}
	c.Spec.RepoURL, r.Spec.RepoURL = "http://charts.example.com", "http://charts.example.com"
	for _, allowed := range []bool{true, false} {
		_, err := (&chartRules{Options: Options{PlainHTTP: allowed}}).ValidateCreate(t.Context(), c)
		_, err2 := (&releaseRules{Options{PlainHTTP: allowed}}).ValidateCreate(t.Context(), r)
		if (err == nil) != allowed || (err2 == nil) != allowed {
			t.Errorf("allowed is %t, errors are %v and %v", allowed, err, err2)
		}
	}
}

func TestErrorsOmitSecrets(t *testing.T) {
	c := good()
	c.Spec.RepoURL = "http://user:canary@charts.example.com"
	c.Spec.ValuesTemplate = "password: canary\n{{ nothing }}"
	_, err := (&chartRules{}).ValidateCreate(t.Context(), c)
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error is %v", err)
	}
}

func TestDefaults(t *testing.T) {
	c := good()
	c.Spec.Options.Atomic = true
	if err := (&chartRules{}).Default(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if c.Spec.ReleaseNamespace != "default" || !c.Spec.Options.Wait || c.Spec.Options.Timeout.Duration != 10*time.Minute {
		t.Errorf("spec: %+v", c.Spec)
	}
	before := c.DeepCopy()
	before.Spec.ReleaseNamespace, before.Spec.Options.Timeout.Duration = "x", time.Minute
	after := before.DeepCopy()
	if err := (&chartRules{}).Default(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what was said is changed (-before +after):\n%s", diff)
	}
	r := &addonsv1.HelmReleaseProxy{}
	if err := (&releaseRules{}).Default(t.Context(), r); err != nil || r.Spec.ReleaseNamespace != "default" || r.Spec.Options.Timeout != nil {
		t.Errorf("%v, spec: %+v", err, r.Spec)
	}
}

func TestImmutableFields(t *testing.T) {
	was := &addonsv1.HelmReleaseProxy{Spec: addonsv1.HelmReleaseProxySpec{
		ChartName: "x", RepoURL: "https://charts.example.com", ReleaseNamespace: "default",
	}}
	for _, tc := range []struct {
		name   string
		change func(*addonsv1.HelmReleaseProxySpec)
		want   string
	}{
		{"chart", func(s *addonsv1.HelmReleaseProxySpec) { s.ChartName = "y" }, "spec.chartName"},
		{"repository", func(s *addonsv1.HelmReleaseProxySpec) { s.RepoURL = "https://other.example.com" }, "spec.repoURL"},
		{"namespace", func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseNamespace = "y" }, "spec.namespace"},
		{"strategy", func(s *addonsv1.HelmReleaseProxySpec) { s.ReconcileStrategy = addonsv1.InstallOnce }, "spec.reconcileStrategy"},
		{"tool", func(s *addonsv1.HelmReleaseProxySpec) { s.Tool = addonsv1.Manifests }, "spec.tool"},
		{"the strategy by its name", func(s *addonsv1.HelmReleaseProxySpec) { s.ReconcileStrategy = addonsv1.Continuous }, ""},
		{"the tool by its name", func(s *addonsv1.HelmReleaseProxySpec) { s.Tool = addonsv1.Helm }, ""},
		{"release name", func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseName = "y" }, ""},
		{"values", func(s *addonsv1.HelmReleaseProxySpec) { s.Values = "y" }, ""},
	} {
		is := was.DeepCopy()
		tc.change(&is.Spec)
		_, err := (&releaseRules{}).ValidateUpdate(t.Context(), was, is)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error is %v, want %q", tc.name, err, tc.want)
		}
	}
	owned := was.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "packages.eks.amazonaws.com/v1alpha1", Kind: "Package", Name: "x", Controller: ptr.To(true)}}
	moved := owned.DeepCopy()
	moved.Spec.ChartName, moved.Spec.RepoURL = "y", "oci://other.example.com"
	if _, err := (&releaseRules{}).ValidateUpdate(t.Context(), owned, moved); err != nil {
		t.Errorf("the chart of a package could not move: %v", err)
	}
	if _, err := (&releaseRules{}).ValidateUpdate(t.Context(), was, moved); err == nil {
		t.Error("moving the chart of an adopted release: got no error, want one")
	}
	moved.Spec.ReleaseNamespace = "y"
	if _, err := (&releaseRules{}).ValidateUpdate(t.Context(), owned, moved); err == nil {
		t.Error("the namespace of a package could be changed")
	}
	c := good()
	c.Spec.ReconcileStrategy = addonsv1.InstallOnce
	if _, err := (&chartRules{}).ValidateUpdate(t.Context(), good(), c); err == nil {
		t.Error("the strategy of a HelmChartProxy could be changed")
	}
	c.Spec.ReconcileStrategy = addonsv1.Continuous
	if _, err := (&chartRules{}).ValidateUpdate(t.Context(), good(), c); err != nil {
		t.Error(err)
	}
}

func TestDependencyCyclesAreRejected(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	if err := addonsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client, err := ctrlclient.New(server.Config, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := server.Namespace(t)
	for name, on := range map[string][]string{"b": {"c"}, "c": {"a", "none"}, "d": nil, "e": {"d"}} {
		c := good()
		c.Namespace, c.Name, c.Spec.DependsOn = ns, name, on
		if err := client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	rules := &chartRules{reader: client}
	for on, want := range map[string]string{
		"a": "a depends on a", "b": "a depends on b depends on c depends on a", "c": "a depends on c depends on a", "d": "", "e": "", "later": "",
	} {
		c := good()
		c.Namespace, c.Spec.DependsOn = ns, []string{on}
		_, err := rules.ValidateCreate(t.Context(), c)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "spec.dependsOn[0]") || !strings.Contains(err.Error(), want)) {
			t.Errorf("on %s: error is %v, want %q", on, err, want)
		}
	}
}

func TestReferencesToOtherNamespacesRequireAnAccount(t *testing.T) {
	elsewhere := corev1.SecretReference{Namespace: "theirs", Name: "x"}
	type change func(*addonsv1.HelmReleaseProxy)
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"credentials":        {func(r *addonsv1.HelmReleaseProxy) { r.Spec.Credentials = &addonsv1.Credentials{Secret: elsewhere} }, "spec.credentials.secret.namespace: Forbidden"},
		"certificates":       {func(r *addonsv1.HelmReleaseProxy) { r.Spec.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &elsewhere} }, "spec.tlsConfig.caSecret.namespace: Forbidden"},
		"a Cluster":          {func(r *addonsv1.HelmReleaseProxy) { r.Spec.ClusterRef.Namespace = "theirs" }, "spec.clusterRef.namespace: Forbidden"},
		"the same namespace": {func(r *addonsv1.HelmReleaseProxy) { r.Spec.ClusterRef.Namespace = "ns" }, ""},
		"with an account": {func(r *addonsv1.HelmReleaseProxy) {
			r.Spec.ServiceAccountName, r.Spec.ClusterRef.Namespace = "deployer", "theirs"
			r.Spec.Credentials = &addonsv1.Credentials{Secret: elsewhere}
		}, ""},
	} {
		r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
		r.Spec.ChartName, r.Spec.RepoURL = "x", "https://charts.example.com"
		tc.change(r)
		_, err := (&releaseRules{}).ValidateCreate(t.Context(), r)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("HelmReleaseProxy with %s: %v, want %q", name, err, tc.want)
		}
		c := good()
		c.Spec.Credentials, c.Spec.TLSConfig, c.Spec.ServiceAccountName = r.Spec.Credentials, r.Spec.TLSConfig, r.Spec.ServiceAccountName
		_, err = (&chartRules{}).ValidateCreate(t.Context(), c)
		if wrong := strings.Contains(tc.want, "Forbidden") && name != "a Cluster"; wrong != (err != nil) {
			t.Errorf("HelmChartProxy with %s: %v", name, err)
		}
	}
}
