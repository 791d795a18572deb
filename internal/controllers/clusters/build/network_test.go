package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
)

func TestNetworkValuesAreNotTemplates(t *testing.T) {
	in := input(t, "small")
	if values := build(t, in).Network.Spec.ValuesTemplate; values != "" {
		t.Errorf("a spec without values gives %q", values)
	}
	raw := `{"image": {"tag": "{{ .Cluster.metadata.name }}{{", "repository": "}}"}, "resources": {"limits": {"cpu": 1}}}`
	in.Config.Cluster.Spec.ClusterNetwork.CNIConfig = &anywherev1.CNIConfig{Cilium: &anywherev1.CiliumConfig{HelmValues: &runtime.RawExtension{Raw: []byte(raw)}}}
	parsed, err := template.Parse("values", build(t, in).Network.Spec.ValuesTemplate)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := parsed.Render(template.Data{Cluster: map[string]any{"metadata": map[string]any{"name": "leaked"}}})
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := yaml.Unmarshal([]byte(raw), &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(rendered), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
