package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// at returns a package whose chart is in a registry.
func at(registry, name string) packagesv1.BundlePackage {
	p := pack(name, "0.1.0")
	p.Source.Registry = registry
	return p
}

func TestMirrorCredentialsAreUsedForTheirEndpointOnly(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, at("mirror.example.com", "mirrored"), at("far.example.com", "far"), at("other.example.com", "other"), at("", "own"))
	w.controller(w.bundleName(1))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: mirror.Credentials},
		Data: map[string][]byte{
			mirror.EndpointKey: []byte("mirror.example.com"), mirror.InsecureKey: []byte("true"),
			addonsv1.DefaultCredentialsKey: []byte("canary"), addonsv1.CAKey: []byte("ca"),
		},
	}
	w.create(secret)
	ref := corev1.SecretReference{Namespace: w.namespace, Name: mirror.Credentials}
	credentials := &addonsv1.Credentials{Secret: ref, Key: addonsv1.DefaultCredentialsKey}
	type access struct {
		Credentials *addonsv1.Credentials
		TLS         *addonsv1.TLSConfig
	}
	all := access{credentials, &addonsv1.TLSConfig{InsecureSkipTLSVerify: true, CASecretRef: &ref}}
	packs := map[string]*packagesv1.Package{}
	check := func(name string, want access) {
		t.Helper()
		if packs[name] == nil {
			packs[name] = w.install(name, packagesv1.PackageSpec{PackageName: name, TargetNamespace: "x"})
		}
		var got access
		kubetest.Eventually(w, name+" has the right credentials", func() bool {
			r := w.release(packs[name], digest(name+"0.1.0"))
			got = access{r.Spec.Credentials, r.Spec.TLSConfig}
			return cmp.Equal(want, got)
		}, func() string { return cmp.Diff(want, got) })
	}
	check("mirrored", all)
	check("far", access{credentials, &addonsv1.TLSConfig{CASecretRef: &ref}}) // the mirror is tried first
	check("other", access{})
	check("own", access{})

	t.Log("the endpoint of the mirror changes")
	secret.Data[mirror.EndpointKey] = []byte("other.example.com")
	must(t, w.Update(t.Context(), secret))
	check("other", all)
	check("mirrored", access{})
}

func TestSharedCredentialsAreUsedOnlyInTheirNamespaces(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, at("shared.example.com", "mirrored"))
	w.controller(w.bundleName(1))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: mirror.Credentials},
		Data:       map[string][]byte{mirror.EndpointKey: []byte("shared.example.com"), addonsv1.DefaultCredentialsKey: []byte("canary")},
	}
	w.create(secret)
	pack := w.install("mirrored", packagesv1.PackageSpec{PackageName: "mirrored", TargetNamespace: "x"})
	if r := w.release(pack, digest("mirrored0.1.0")); r.Spec.Credentials != nil {
		t.Errorf("got credentials %v that are bound to no namespace, want none", r.Spec.Credentials)
	}
	secret.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: "elsewhere"}
	must(t, w.Update(t.Context(), secret))
	second := w.install("mirrored-second", packagesv1.PackageSpec{PackageName: "mirrored", TargetNamespace: "y"})
	if r := w.release(second, digest("mirrored0.1.0")); r.Spec.Credentials != nil {
		t.Errorf("got credentials %v that are bound to another namespace, want none", r.Spec.Credentials)
	}
	secret.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: "*"}
	must(t, w.Update(t.Context(), secret))
	kubetest.Eventually(w, "the credentials are used", func() bool {
		return w.release(pack, digest("mirrored0.1.0")).Spec.Credentials != nil
	}, func() string { return "" })
}
