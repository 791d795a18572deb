package install

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
)

func TestForeignFluxNeedsTheFieldsThatDroverUses(t *testing.T) {
	found := 0
	for _, m := range config.FluxCRDs() {
		fields, needed := fluxNeeds[m.Name]
		if !needed {
			continue
		}
		found++
		read := func() *apiextensionsv1.CustomResourceDefinition {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(m.Data, crd); err != nil {
				t.Fatal(err)
			}
			return crd
		}
		if got := lacking(read(), fields); got != "" {
			t.Errorf("our own %s lacks %s", m.Name, got)
		}
		older := read()
		delete(older.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, fields[0])
		if got := lacking(older, fields); got != "the field spec."+fields[0] {
			t.Errorf("an older %s lacks %q", m.Name, got)
		}
		beta := read()
		for i := range beta.Spec.Versions {
			beta.Spec.Versions[i].Name = "v1beta1"
		}
		if got := lacking(beta, fields); got != "version v1" {
			t.Errorf("a preliminary %s lacks %q", m.Name, got)
		}
	}
	if found != len(fluxNeeds) {
		t.Errorf("%d of %d definitions found", found, len(fluxNeeds))
	}
}
