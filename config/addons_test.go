package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drover-dev/drover/config"
)

// definition returns the CRD of a kind.
func definition(t *testing.T, name string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	for _, m := range config.CRDs() {
		if m.Name == name {
			return decode[apiextensionsv1.CustomResourceDefinition](t, m)
		}
	}
	t.Fatalf("no definition %q", name)
	return apiextensionsv1.CustomResourceDefinition{}
}

func TestAddonKindsMatchUpstream(t *testing.T) {
	for name, want := range map[string]struct {
		short    string
		labels   []string
		columns  []string
		required []string
	}{
		"helmchartproxies.addons.cluster.x-k8s.io": {
			"hcp",
			[]string{"clusterctl.cluster.x-k8s.io", "clusterctl.cluster.x-k8s.io/move-hierarchy", "visualizer.cluster.x-k8s.io"},
			[]string{"Ready", "Reason", "Message"},
			[]string{"chartName", "clusterSelector", "repoURL"},
		},
		"helmreleaseproxies.addons.cluster.x-k8s.io": {
			"hrp",
			[]string{"clusterctl.cluster.x-k8s.io", "visualizer.cluster.x-k8s.io"},
			[]string{"Cluster", "Ready", "Reason", "Message", "Status", "Revision"},
			[]string{"chartName", "clusterRef", "repoURL"},
		},
	} {
		crd := definition(t, name)
		if diff := cmp.Diff([]string{want.short}, crd.Spec.Names.ShortNames); diff != "" {
			t.Errorf("%s: short names (-want +got):\n%s", name, diff)
		}
		for _, label := range want.labels {
			if _, ok := crd.Labels[label]; !ok {
				t.Errorf("%s has no label %s", name, label)
			}
		}
		version := crd.Spec.Versions[0]
		var columns []string
		for _, c := range version.AdditionalPrinterColumns {
			columns = append(columns, c.Name)
		}
		if diff := cmp.Diff(want.columns, columns); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", name, diff)
		}
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		if diff := cmp.Diff(want.required, spec.Required); diff != "" {
			t.Errorf("%s: required fields (-want +got):\n%s", name, diff)
		}
		if version.Subresources.Status == nil || version.Name != "v1alpha1" || !version.Storage || crd.Spec.Scope != "Namespaced" {
			t.Errorf("%s: %+v", name, version.Name)
		}
		options := spec.Properties["options"]
		for path, value := range map[string]string{"install.createNamespace": "true", "upgrade.maxHistory": "10", "enableClientCache": "false"} {
			if got := defaultOf(options, path); got != value {
				t.Errorf("%s: the default of options.%s is %q, want %q", name, path, got, value)
			}
		}
		if _, ok := options.Properties["options"]; !ok {
			t.Errorf("%s: options.options is gone", name)
		}
	}
}

func defaultOf(schema apiextensionsv1.JSONSchemaProps, path string) string {
	for _, key := range strings.Split(path, ".") {
		schema = schema.Properties[key]
	}
	if schema.Default == nil {
		return ""
	}
	return string(schema.Default.Raw)
}

func TestAddonWebhookPathsMatchUpstream(t *testing.T) {
	got := map[string]string{}
	for _, m := range config.Webhooks() {
		for _, w := range decode[admissionv1.ValidatingWebhookConfiguration](t, m).Webhooks {
			if w.Rules[0].APIVersions[0] == "v1alpha1" && w.Rules[0].APIGroups[0] == "addons.cluster.x-k8s.io" {
				got[w.Name] = *w.ClientConfig.Service.Path
			}
		}
	}
	if diff := cmp.Diff(map[string]string{
		"helmchartproxy.kb.io":    "/mutate-addons-cluster-x-k8s-io-v1alpha1-helmchartproxy",
		"helmreleaseproxy.kb.io":  "/mutate-addons-cluster-x-k8s-io-v1alpha1-helmreleaseproxy",
		"vhelmchartproxy.kb.io":   "/validate-addons-cluster-x-k8s-io-v1alpha1-helmchartproxy",
		"vhelmreleaseproxy.kb.io": "/validate-addons-cluster-x-k8s-io-v1alpha1-helmreleaseproxy",
	}, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}
