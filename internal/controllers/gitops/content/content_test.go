package content

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

const (
	cluster = `{apiVersion: anywhere.eks.amazonaws.com/v1alpha1, kind: Cluster, metadata: {name: dev, namespace: team},
  spec: {datacenterRef: {kind: DockerDatacenterConfig, name: dev}, gitOpsRef: {kind: FluxConfig, name: fleet}}}`
	datacenter = `{apiVersion: anywhere.eks.amazonaws.com/v1alpha1, kind: DockerDatacenterConfig, metadata: {name: dev, namespace: team}, spec: {}}`
	flux       = `{apiVersion: anywhere.eks.amazonaws.com/v1alpha1, kind: FluxConfig, metadata: {name: fleet, namespace: team}, spec: {branch: given}}`
)

func write(t *testing.T, objects ...string) *droverv1.GitChange {
	t.Helper()
	change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"}}
	change.Spec = droverv1.GitChangeSpec{Cluster: "dev", Action: droverv1.GitWrite, FluxConfig: "fleet"}
	for _, text := range objects {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		change.Spec.Objects = append(change.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	return change
}

func reader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := anywherev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestReadRejectsWhatDoesNotBelongToTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		objects []string
		want    string
	}{
		"a cluster":                     {[]string{datacenter, cluster}, ""},
		"no objects":                    {nil, "Cluster"},
		"no Cluster":                    {[]string{datacenter}, "Cluster"},
		"two Clusters":                  {[]string{cluster, strings.ReplaceAll(cluster, "name: dev", "name: dev2")}, "Cluster"},
		"another Cluster":               {[]string{strings.ReplaceAll(cluster, "name: dev", "name: prod")}, "another Cluster"},
		"another namespace":             {[]string{datacenter, strings.ReplaceAll(cluster, "namespace: team", "namespace: other")}, "metadata.namespace: is not the namespace of the GitChange"},
		"no namespace":                  {[]string{strings.ReplaceAll(datacenter, ", namespace: team", ""), cluster}, "DockerDatacenterConfig/dev: metadata.namespace"},
		"a list with another namespace": {[]string{"{apiVersion: v1, kind: List, metadata: {namespace: team}, items: [" + strings.ReplaceAll(datacenter, "team", "other") + "]}", cluster}, "metadata.namespace"},
		"a config of another cluster":   {[]string{datacenter, strings.ReplaceAll(datacenter, "name: dev", "name: prod"), cluster}, "DockerDatacenterConfig/prod, which the Cluster doesn't reference"},
		"a Secret":                      {[]string{"{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}", cluster}, "Secret/s, which the Cluster doesn't reference"},
		"a status":                      {[]string{datacenter, strings.Replace(cluster, "metadata:", "status: {ready: true}, metadata:", 1)}, "spec.objects[1].status"},
		"an unknown field":              {[]string{strings.Replace(cluster, "gitOpsRef", "gitopsReference", 1)}, "unknown field"},
		"another repository":            {[]string{strings.Replace(cluster, "name: fleet", "name: other", 1)}, "doesn't reference spec.fluxConfig"},
		"not an object":                 {[]string{"[]", cluster}, "spec.objects[0]: is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(t.Context(), reader(t), write(t, test.objects...))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestReadAddsTheFluxConfigThatExists(t *testing.T) {
	stored := &anywherev1.FluxConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet", Labels: map[string]string{"of": "Flux"}, ResourceVersion: "1"},
		Spec:       anywherev1.FluxConfigSpec{Branch: "stored"},
	}
	config, err := Read(t.Context(), reader(t, stored), write(t, datacenter, cluster))
	if err != nil {
		t.Fatal(err)
	}
	want := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "fleet", Annotations: map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"},
	}, Spec: stored.Spec}
	if diff := cmp.Diff(want, config.Flux); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if config, err = Read(t.Context(), reader(t, stored), write(t, datacenter, cluster, flux)); err != nil || config.Flux.Spec.Branch != "given" {
		t.Errorf("FluxConfig %+v, error %v", config, err)
	}
}
