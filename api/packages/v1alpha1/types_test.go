package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestEveryKindIsRegisteredWithItsList(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Package", "PackageBundle", "PackageBundleController"} {
		for _, name := range []string{kind, kind + "List"} {
			if _, err := s.New(GroupVersion.WithKind(name)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSourceWinsOverDefaults(t *testing.T) {
	for name, tt := range map[string]struct {
		spec                 PackageBundleControllerSpec
		registry, repository string
	}{
		"nothing":            {PackageBundleControllerSpec{}, "", ""},
		"defaults":           {PackageBundleControllerSpec{DefaultRegistry: "r", BundleRepository: "b"}, "r", "b"},
		"an empty source":    {PackageBundleControllerSpec{DefaultRegistry: "r", BundleRepository: "b", Source: &BundleSource{}}, "r", "b"},
		"a source":           {PackageBundleControllerSpec{DefaultRegistry: "r", BundleRepository: "b", Source: &BundleSource{Registry: "s", Repository: "t"}}, "s", "t"},
		"a part of a source": {PackageBundleControllerSpec{DefaultRegistry: "r", BundleRepository: "b", Source: &BundleSource{Repository: "t"}}, "r", "t"},
	} {
		if got := tt.spec.Registry(); got != tt.registry {
			t.Errorf("%s: registry %q, want %q", name, got, tt.registry)
		}
		if got := tt.spec.Repository(); got != tt.repository {
			t.Errorf("%s: repository %q, want %q", name, got, tt.repository)
		}
	}
}

func TestPackageRoundTrip(t *testing.T) {
	const manifest = "{packageName: hello, packageVersion: 1.0.0, config: 'a: b', targetNamespace: shop, timeout: 5m0s, rollbackOnFailure: true}"
	var spec PackageSpec
	if err := yaml.UnmarshalStrict([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if data, err := json.Marshal(PackageSpec{}); err != nil || !strings.Contains(string(data), `"packageName":""`) {
		t.Errorf("an empty package is %s, error %v", data, err)
	}
}

func TestNamespacesOfClustersDoNotCollide(t *testing.T) {
	if !strings.HasPrefix(NamespacePrefix, Namespace+"-") {
		t.Errorf("Packages of a cluster are in %q, not below %q", NamespacePrefix, Namespace)
	}
}
