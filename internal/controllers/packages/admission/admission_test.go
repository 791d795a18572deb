package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func version(name, schema string, dependencies ...string) packagesv1.SourceVersion {
	v := packagesv1.SourceVersion{Name: name, Digest: "sha256:" + strings.Repeat("0", 64), Dependencies: dependencies}
	if schema != "" {
		v.Schema = bundle.EncodeSchema([]byte(schema))
	}
	return v
}

func pack(name string, v packagesv1.SourceVersion) packagesv1.BundlePackage {
	return packagesv1.BundlePackage{Name: name, Source: packagesv1.BundlePackageSource{Repository: name, Versions: []packagesv1.SourceVersion{v}}}
}

func TestPackageRules(t *testing.T) {
	garbage := version("1.0.0", "")
	garbage.Schema = "!"
	workload := pack("workload", version("1.0.0", ""))
	workload.WorkloadOnly = true
	b := &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: "v1-36-1"}, Spec: packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{
		pack("hello", version("0.1.0", "")), workload, pack("garbage", garbage),
		pack("strict", version("0.1.0", `{"type":"object","additionalProperties":false,"properties":{"title":{"type":"string"}}}`)),
		pack("a", version("1", "", "b")), pack("b", version("1", "", "a")), pack("lost", version("1", "", "nothing")),
	}}}
	for _, tc := range []struct {
		name    string
		cluster string
		spec    packagesv1.PackageSpec
		want    string
	}{
		{"any config without a schema", "billy", packagesv1.PackageSpec{PackageName: "hello", Config: "any: thing"}, ""},
		{"case of the name is ignored", "billy", packagesv1.PackageSpec{PackageName: "HELLO"}, ""},
		{"unknown package", "billy", packagesv1.PackageSpec{PackageName: "none"}, "package not found in bundle (v1-36-1): none"},
		{"unknown version", "billy", packagesv1.PackageSpec{PackageName: "hello", PackageVersion: "9"}, "package version not found in bundle (v1-36-1): hello @ 9"},
		{"workload-only package on the management cluster", "mgmt", packagesv1.PackageSpec{PackageName: "workload"}, "package my should only be installed on a workload cluster"},
		{"workload-only package on a workload cluster", "billy", packagesv1.PackageSpec{PackageName: "workload"}, ""},
		{"invalid schema", "billy", packagesv1.PackageSpec{PackageName: "garbage"}, "illegal base64"},
		{"invalid YAML", "billy", packagesv1.PackageSpec{PackageName: "hello", Config: "a: b: c"}, "yaml"},
		{"valid config", "billy", packagesv1.PackageSpec{PackageName: "strict", Config: "title: hi"}, ""},
		{"no config", "billy", packagesv1.PackageSpec{PackageName: "strict"}, ""},
		{
			"invalid config", "billy",
			packagesv1.PackageSpec{PackageName: "strict", Config: "fakeConfig: x"},
			"error validating configurations - (root): Additional property fakeConfig is not allowed\n",
		},
		{"dependency cycle", "billy", packagesv1.PackageSpec{PackageName: "a"}, "dependency cycle"},
		{"missing dependency, which a condition reports", "billy", packagesv1.PackageSpec{PackageName: "lost"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rules := &packageRules{Options: Options{ManagementCluster: "mgmt"}}
			p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: "my"}, Spec: tc.spec}
			err := rules.check(&packagesv1.Package{}, p, b, tc.cluster)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTargetNamespaceIsImmutable(t *testing.T) {
	for _, tc := range []struct {
		name, spec, status, target, wanted string
		rejected                           bool
	}{
		{name: "not installed yet", spec: "a", wanted: "b"},
		{name: "unchanged", spec: "a", status: "a", target: "a", wanted: "a"},
		{name: "changed", spec: "a", status: "a", target: "a", wanted: "b", rejected: true},
		{name: "removed", spec: "a", status: "a", target: "a", rejected: true},
		{name: "another than that of the chart", target: "chosen", wanted: "b", rejected: true},
		{name: "that of the chart", target: "chosen", wanted: "chosen"},
		{name: "never set", target: "chosen"},
		{name: "changed, with a status without a target", spec: "a", status: "a", wanted: "b", rejected: true},
	} {
		was := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: "my"}, Spec: packagesv1.PackageSpec{TargetNamespace: tc.spec}}
		was.Status.Spec.TargetNamespace = tc.status
		if tc.target != "" {
			was.Status.Target = &packagesv1.PackageTarget{Namespace: tc.target}
		}
		is := was.DeepCopy()
		is.Spec.TargetNamespace = tc.wanted
		err := immutable(was, is)
		if (err != nil) != tc.rejected || err != nil && err.Error() != "package my targetNamespace is immutable" {
			t.Errorf("%s: error is %v", tc.name, err)
		}
	}
}

// emptyReader finds no objects.
type emptyReader struct{ client.Reader }

func (emptyReader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestActiveBundleRules(t *testing.T) {
	for _, tc := range []struct{ name, was, is, kubernetes, want string }{
		{"none", "", "", "1.36", ""},
		{"missing bundle", "", "v1-36-7", "", ""},
		{"newer bundle", "v1-36-7", "v1-36-8", "1.36", ""},
		{"older bundle", "v1-36-8", "v1-36-7", "1.36", ""},
		{"bundle for another Kubernetes", "v1-36-7", "v1-35-8", "1.36", "kuberneetes version v1-36 does not match v1-35-8"},
		{"unchanged after an upgrade of Kubernetes", "v1-35-7", "v1-35-7", "1.36", ""},
		{"invalid name", "", "latest", "", `activeBundle "latest" not present on cluster`},
	} {
		was := &packagesv1.PackageBundleController{Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: tc.was}}
		was.Status.KubernetesVersion = tc.kubernetes
		is := was.DeepCopy()
		is.Spec.ActiveBundle = tc.is
		_, err := (&controllerRules{reader: emptyReader{}}).ValidateUpdate(t.Context(), was, is)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Code != 400 || status.Status().Message != tc.want || string(status.Status().Reason) != tc.want {
			t.Errorf("%s: error is %#v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestUnrelatedUpdateIsAccepted(t *testing.T) {
	b := &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: "invalid"}}
	labelled := b.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if _, err := (&bundleRules{}).ValidateUpdate(t.Context(), b, labelled); err != nil {
		t.Error(err)
	}
	labelled.Annotations = map[string]string{packagesv1.SignatureAnnotation: "x"}
	if _, err := (&bundleRules{}).ValidateUpdate(t.Context(), b, labelled); err == nil {
		t.Error("a changed signature was not verified")
	}
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Name: "my", Namespace: "eksa-packages-x"}}
	free := p.DeepCopy()
	free.Finalizers = []string{"x"}
	if _, err := (&packageRules{}).ValidateUpdate(t.Context(), p, free); err != nil {
		t.Error(err)
	}
}

func TestTenantsMustNameAnAccount(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eksa-packages-billy"}}
	scheme := runtime.NewScheme()
	if err := packagesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	rules := &packageRules{reader: fake.NewClientBuilder().WithScheme(scheme).Build(), Options: Options{Policy: delegation.New(delegation.Options{
		Tenants: labels.Everything(), Namespaces: fake.NewClientBuilder().WithObjects(namespace).Build(),
	})}}
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "hello"}}
	if _, err := rules.ValidateCreate(t.Context(), p); err == nil || !strings.Contains(err.Error(), "requires serviceAccountName") {
		t.Errorf("got %v", err)
	}
	p.Spec.ServiceAccountName = "deployer"
	if _, err := rules.ValidateCreate(t.Context(), p); err != nil {
		t.Error(err)
	}
}
