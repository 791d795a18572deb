package build

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/spec"
)

var update = flag.Bool("update", false, "write what is built to testdata")

func versions(minor string) (string, error) {
	found, ok := map[string]string{"1.34": "v1.34.9", "1.35": "v1.35.4", "1.36": "v1.36.3"}[minor]
	if !ok {
		return "", fmt.Errorf("no Kubernetes %s", minor)
	}
	return found, nil
}

// input reads a file of testdata.
func input(t testing.TB, name string) Input {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".spec.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := spec.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	spec.Default(config)
	return Input{
		Config: config, Version: versions, Project: "project-1", Charts: "oci://registry.example.com/charts", CNIVersion: "0.1.0",
		Registry: &Credentials{Username: "developer", Password: "sesame"},
	}
}

func build(t testing.TB, in Input) *Set {
	t.Helper()
	set, err := Objects(in)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// render formats objects for people.
func render(t testing.TB, set *Set) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme, addonsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	for _, o := range set.All() {
		kind, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes()
}

func specs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.spec.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no specs: %v", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".spec.yaml"))
	}
	return names
}

func TestObjectsOfSpecs(t *testing.T) {
	for _, name := range specs(t) {
		t.Run(name, func(t *testing.T) {
			got := render(t, build(t, input(t, name)))
			file := filepath.Join("testdata", name+".objects.yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update if this is right (-want +got):\n%s", diff)
			}
		})
	}
}

// existingAfter returns the objects after a set was applied and the control plane became ready.
func existingAfter(set *Set) *Existing {
	out := &Existing{ControlPlane: set.ControlPlane.DeepCopy(), Workers: map[string]*clusterv1.MachineDeployment{}}
	out.ControlPlane.Status.Version = set.ControlPlane.Spec.Version
	for _, d := range set.Workers {
		out.Workers[d.Name] = d.DeepCopy()
	}
	for _, m := range set.Machines {
		out.Machines = append(out.Machines, m.DeepCopy())
	}
	for _, b := range set.Bootstraps {
		out.Bootstraps = append(out.Bootstraps, b.DeepCopy())
	}
	return out
}

func TestBuildIsDeterministic(t *testing.T) {
	for _, name := range specs(t) {
		t.Run(name, func(t *testing.T) {
			in := input(t, name)
			first := build(t, in)
			if diff := cmp.Diff(string(render(t, build(t, input(t, name)))), string(render(t, first))); diff != "" {
				t.Errorf("the same input gave something else:\n%s", diff)
			}
			in.Now = existingAfter(first)
			second := build(t, in)
			in.Now = existingAfter(second)
			if diff := cmp.Diff(string(render(t, second)), string(render(t, build(t, in)))); diff != "" {
				t.Errorf("with what exists it gave something else:\n%s", diff)
			}
			if diff := cmp.Diff(names(first), names(second)); diff != "" {
				t.Errorf("names changed (-first +second):\n%s", diff)
			}
		})
	}
}

func names(set *Set) []string {
	var out []string
	for _, o := range set.All() {
		out = append(out, fmt.Sprintf("%T/%s", o, o.GetName()))
	}
	return out
}

func TestChangesCreateNewTemplates(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*anywherev1.Cluster)
		// machines and bootstrap are the templates of the first group afterwards, controlPlane that
		// of the control plane.
		machines, bootstrap, controlPlane string
	}{
		{"nothing", func(*anywherev1.Cluster) {}, "all-md-0-1", "all-md-0-1", "all-control-plane-1"},
		{"a count", func(c *anywherev1.Cluster) { *c.Spec.WorkerNodeGroupConfigurations[0].Count = 5 }, "all-md-0-1", "all-md-0-1", "all-control-plane-1"},
		{"labels of a group", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Labels["new"] = "label" }, "all-md-0-1", "all-md-0-2", "all-control-plane-1"},
		{"the machines of a group, and their users", func(c *anywherev1.Cluster) {
			c.Spec.WorkerNodeGroupConfigurations[0].MachineGroupRef.Name = "controlplanes"
		}, "all-md-0-2", "all-md-0-2", "all-control-plane-1"},
		{"the machines of the control plane", func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.MachineGroupRef.Name = "workers" }, "all-md-0-1", "all-md-0-1", "all-control-plane-2"},
		{"names in certificates", func(c *anywherev1.Cluster) { c.Spec.ControlPlaneConfiguration.CertSANs = nil }, "all-md-0-1", "all-md-0-1", "all-control-plane-1"},
		{"taints that go", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Taints = nil }, "all-md-0-1", "all-md-0-2", "all-control-plane-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input(t, "all")
			was := build(t, in)
			in.Now = existingAfter(was)
			tc.change(in.Config.Cluster)
			is := build(t, in)
			got := machineryOf(is.Workers[0])
			if got.Machines != tc.machines || got.Bootstrap != tc.bootstrap {
				t.Errorf("templates are %+v, want %s and %s", got, tc.machines, tc.bootstrap)
			}
			if name := is.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef.Name; name != tc.controlPlane {
				t.Errorf("template is %q, want %q", name, tc.controlPlane)
			}
			in.Now = existingAfter(is)
			in.Now.Machines = append(in.Now.Machines, existingAfter(was).Machines...)
			in.Now.Bootstraps = append(in.Now.Bootstraps, existingAfter(was).Bootstraps...)
			if again := machineryOf(build(t, in).Workers[0]); again != got {
				t.Errorf("got templates %+v without a change, want the same ones", again)
			}
		})
	}
}
