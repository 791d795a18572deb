package bootstrap

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// deployed returns the Deployment in the manifests of the manager.
func deployed(t *testing.T, o Options, on site) *appsv1.Deployment {
	t.Helper()
	manifests, err := o.manager(on)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	for _, m := range manifests {
		if m.Name != deployment {
			continue
		}
		if err := yaml.UnmarshalStrict(m.Data, d); err != nil {
			t.Fatalf("parsing manifest %q: %v", m.Name, err)
		}
	}
	return d
}

func TestManagerIsDeployedWithTheOptions(t *testing.T) {
	d := deployed(t, Options{Image: "drover.example/manager:1", Registry: "127.0.0.1:5555"}, site{replicas: 2})
	if d.Spec.Replicas == nil || *d.Spec.Replicas != 2 {
		t.Errorf("got replicas %v, want 2", d.Spec.Replicas)
	}
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != "drover.example/manager:1" {
		t.Errorf("got image %q, want that of the options", c.Image)
	}
	for flag, want := range map[string]bool{
		"--offer-addr=127.0.0.1:5555":                 true,
		"--offer-addr=127.0.0.1:5000":                 false,
		"--webhook-client-ca=cluster":                 false,
		"--leader-elect":                              true,
		"--offer-key=/etc/drover/bundles/bundles.key": true,
	} {
		if got := slices.Contains(c.Args, flag); got != want {
			t.Errorf("arguments %q contain %s: got %t, want %t", c.Args, flag, got, want)
		}
	}
}

func TestRequiredCertificatesAreAnArgumentOfTheManager(t *testing.T) {
	args := deployed(t, Options{Image: "image"}, site{replicas: 1, requireCertificates: true}).Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--webhook-addr=:9443", "--webhook-client-ca=cluster", "--offer-addr=127.0.0.1:5000"} {
		if !slices.Contains(args, want) {
			t.Errorf("got arguments %q, want them to contain %s", args, want)
		}
	}
}
