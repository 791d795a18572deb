package packages_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// copied returns the password for the registry in a namespace of a cluster, empty if there is none.
func (w *world) copied(cluster int, namespace string) string {
	w.Helper()
	secret, err := servers.workloads.All()[cluster].Clientset(w).CoreV1().Secrets(namespace).Get(w.Context(), mirror.Credentials, metav1.GetOptions{})
	if err != nil {
		w.must(client.IgnoreNotFound(err))
		return ""
	}
	var config struct {
		Auths map[string]struct{ Password string }
	}
	if json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config) != nil || secret.Type != corev1.SecretTypeDockerConfigJson {
		w.Errorf("the Secret in %q is invalid", namespace)
	}
	return config.Auths[w.registry.Host].Password
}

func TestMirrorCredentialsAreUsedAndCopied(t *testing.T) {
	w := newWorld(t)
	w.begin() // the registry of the manager is another one
	defer w.clean()
	w.registry = artifacttest.NewRegistry(t, artifacttest.RegistryOptions{
		ServerOptions: artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "canary-1"},
	})
	configured := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: mirror.Secret, Annotations: map[string]string{
			anywherev1.CredentialsNamespacesAnnotation: packagesv1.KubeconfigNamespace,
		}},
		Data: map[string][]byte{
			"ENDPOINT": []byte("https://" + w.registry.Host), "USERNAME": []byte("drover"), "PASSWORD": []byte("canary-1"), "CACERTCONTENT": w.registry.CA,
		},
	}
	w.must(w.Create(t.Context(), configured))
	b := w.publish(1, pack("hello", "0.1.0", w.chart("hello", "0.1.0")))
	for cluster := range 2 {
		w.must(w.Create(t.Context(), &packagesv1.PackageBundleController{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[cluster]},
			Spec: packagesv1.PackageBundleControllerSpec{
				ActiveBundle: b.Name, CreateNamespace: true, Source: &packagesv1.BundleSource{Registry: w.registry.Host, Repository: bundleRepository},
			},
		}))
	}
	one := w.install(0, "one", "hello")
	two := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[0] + "-two"},
		Spec:       packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "elsewhere"},
	}
	w.must(w.Create(t.Context(), two))
	w.awaitInstalled(one, "0.1.0") // requires the credentials and the CA
	w.awaitInstalled(two, "0.1.0")
	if _, err := servers.workloads.All()[0].Clientset(t).CoreV1().ConfigMaps("elsewhere").Get(t.Context(), "two", metav1.GetOptions{}); err != nil {
		t.Errorf("reading an object in the target namespace: %v", err)
	}
	has := func(password string) func() bool {
		return func() bool { return w.copied(0, "from-chart") == password && w.copied(0, "elsewhere") == password }
	}
	w.until("both namespaces have the credentials", has("canary-1"))

	t.Log("the password changes")
	configured.Data["PASSWORD"] = []byte("canary-2")
	w.must(w.Update(t.Context(), configured))
	w.until("both namespaces have the new password", has("canary-2"))
	if got := w.copied(1, "from-chart") + w.copied(1, "elsewhere"); got != "" {
		t.Error("a cluster without packages has credentials")
	}

	w.must(w.Delete(t.Context(), two))
	w.gone(two)
	w.until("the credentials are deleted with the last package of a namespace", func() bool { return w.copied(0, "elsewhere") == "" })
	if w.copied(0, "from-chart") != "canary-2" {
		t.Error("the credentials of a namespace with a package were deleted")
	}
	w.must(w.Delete(t.Context(), one))
	w.gone(one)
	w.until("the credentials are deleted with the last package", func() bool { return w.copied(0, "from-chart") == "" })
	w.must(w.Delete(t.Context(), configured))
	here := client.ObjectKey{Namespace: packagesv1.NamespacePrefix + w.clusters[0], Name: mirror.Credentials}
	w.until("the converted Secret is deleted", func() bool { return w.Get(t.Context(), here, &corev1.Secret{}) != nil })
}
