package active

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// forged returns a bundle that was changed after it was signed.
func forged(w *world) artifacttest.Package {
	b := at(w.bundle(2), "1.0.0")
	b.Namespace = packagesv1.Namespace
	w.signer.Sign(w, b)
	b.Spec.Packages[0].Source.Versions[0].Digest = "sha256:2"
	text, err := yaml.Marshal(b)
	w.must(err)
	return artifacttest.Package{Name: "bundles", Version: latest, Archive: text, MediaType: "application/yaml"}
}

// install creates a Package that is installed in a namespace of the cluster.
func (w *world) install(name, namespace string) *packagesv1.Package {
	w.Helper()
	here := packagesv1.NamespacePrefix + w.name
	if err := w.client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: here}}); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name + "-" + namespace}, Spec: packagesv1.PackageSpec{PackageName: name}}
	w.must(w.client.Create(w.Context(), p))
	p.Status.Target = &packagesv1.PackageTarget{Cluster: w.name, ClusterNamespace: "fleet", Release: name, Namespace: namespace}
	w.must(w.client.Status().Update(w.Context(), p))
	return p
}

// namespaceExists creates a namespace on the cluster and returns its name.
func (w *world) namespaceExists(name string) string {
	w.Helper()
	name += "-" + w.name
	_, err := w.target.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.must(err)
	return name
}

// mirrored returns the Secret in which a user configures a mirror.
func (w *world) mirrored(password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + w.name, Name: mirror.Secret},
		Data:       bytesOf(map[string]string{"ENDPOINT": "mirror.test", "USERNAME": "drover", "PASSWORD": password, "INSECURE": "true"}),
	}
}

// copies returns the passwords on the cluster by namespace.
func (w *world) copies() map[string]string {
	w.Helper()
	list, err := w.target.CoreV1().Secrets("").List(w.Context(), metav1.ListOptions{LabelSelector: copyLabel + "=" + w.name})
	w.must(err)
	out := map[string]string{}
	for _, s := range list.Items {
		if s.Type != corev1.SecretTypeDockerConfigJson || len(s.Data) != 1 {
			w.Errorf("Secret %q is of type %q with %d keys", s.Name, s.Type, len(s.Data))
		}
		out[s.Namespace] = password(w.T, s.Data[corev1.DockerConfigJsonKey])
	}
	return out
}

func password(t *testing.T, config []byte) string {
	t.Helper()
	var parsed struct {
		Auths map[string]struct{ Password string }
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Error("the Docker config is invalid")
	}
	return parsed.Auths["mirror.test"].Password
}

// made returns the Secret on the management plane, nil if it does not exist.
func (w *world) made() *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.NamespacePrefix + w.name, Name: mirror.Credentials}, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return s
}

// running returns a cluster with an active bundle.
func running(t *testing.T) *world {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start()
	w.active(w.bundle(1))
	return w
}

func TestCredentialsAreCopiedOnlyToNamespacesWithPackages(t *testing.T) {
	w := running(t)
	web, shop, _ := w.namespaceExists("web"), w.namespaceExists("shop"), w.namespaceExists("idle")
	first := w.install("hello", web)
	if len(w.copies()) > 0 {
		t.Error("credentials were copied without a mirror")
	}
	secret := w.mirrored("canary-1")
	w.must(w.client.Create(t.Context(), secret))
	w.until("the namespace with a package has credentials", func() bool { return w.copies()[web] == "canary-1" && len(w.copies()) == 1 })
	s := w.made()
	if string(s.Data["insecure"]) != "true" || password(t, s.Data["config.json"]) != "canary-1" || password(t, s.Data[".dockerconfigjson"]) != "canary-1" {
		t.Error("the Secret for HelmReleaseProxies is not complete")
	}

	second := w.install("world", shop)
	w.until("the second namespace has credentials", func() bool { return w.copies()[shop] == "canary-1" })

	w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	secret.Data["PASSWORD"] = []byte("canary-2")
	w.must(w.client.Update(t.Context(), secret))
	w.until("the credentials are rotated", func() bool {
		return w.copies()[web] == "canary-2" && w.copies()[shop] == "canary-2" && password(t, w.made().Data["config.json"]) == "canary-2"
	})
	w.active(w.bundle(1))

	w.must(w.target.CoreV1().Secrets(web).Delete(t.Context(), mirror.Credentials, metav1.DeleteOptions{}))
	w.until("a deleted copy is created again", func() bool { return w.copies()[web] == "canary-2" })

	w.must(w.client.Delete(t.Context(), second))
	w.until("they are deleted with the last package of a namespace", func() bool { c := w.copies(); return len(c) == 1 && c[web] == "canary-2" })
	w.must(w.client.Delete(t.Context(), first))
	w.until("no copies are left", func() bool { return len(w.copies()) == 0 })

	w.must(w.client.Delete(t.Context(), secret))
	w.until("the Secret on the management plane is deleted", func() bool { return w.made() == nil })
	w.await("the finalizer is removed", func(o *packagesv1.PackageBundleController) bool {
		return len(o.Finalizers) == 0 && meta.FindStatusCondition(o.Status.Conditions, packagesv1.CredentialsSynced) == nil
	})
	if recorded := w.events.Of(w.name); strings.Contains(recorded, "canary") {
		t.Error("an event contains a password")
	}
}

func TestNewNamespaceGetsCredentials(t *testing.T) {
	w := running(t)
	w.must(w.client.Create(t.Context(), w.mirrored("canary")))
	w.install("hello", "late-"+w.name)
	w.await("the credentials are synced", func(o *packagesv1.PackageBundleController) bool {
		return isTrue(o.Status.Conditions, packagesv1.CredentialsSynced)
	})
	late := w.namespaceExists("late")
	w.until("the credentials are copied", func() bool { return w.copies()[late] == "canary" })
}

func TestForeignSecretIsNotOverwritten(t *testing.T) {
	w := running(t)
	web := w.namespaceExists("web")
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: mirror.Credentials}, Data: map[string][]byte{"mine": []byte("yes")}}
	_, err := w.target.CoreV1().Secrets(web).Create(t.Context(), own, metav1.CreateOptions{})
	w.must(err)
	w.must(w.client.Create(t.Context(), w.mirrored("canary")))
	w.install("hello", web)
	w.until("the conflict is reported", func() bool { return strings.Contains(w.events.Of(w.name), "CredentialsNotOurs: ") })
	got, err := w.target.CoreV1().Secrets(web).Get(t.Context(), mirror.Credentials, metav1.GetOptions{})
	w.must(err)
	if string(got.Data["mine"]) != "yes" || len(got.Data) != 1 {
		t.Errorf("the Secret has %d keys", len(got.Data))
	}
	w.front.Requests()
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.LogLevel = new(int32) })
	w.await("the change is observed", func(o *packagesv1.PackageBundleController) bool { return o.Status.ObservedGeneration == o.Generation })
	if got := w.front.Requests(); slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, "/secrets/") }) {
		t.Errorf("the copy was retried: %q", got)
	}
}

func TestCloudSecretIsCopiedWhilePackagesExist(t *testing.T) {
	w := newWorldAlone(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start()
	w.active(w.bundle(1))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: CloudSecret, Annotations: boundTo("fleet")},
		Data:       map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("canary")},
	}
	w.must(w.client.Create(t.Context(), secret))
	copied := func() string {
		s, err := w.target.CoreV1().Secrets(packagesv1.Namespace).Get(t.Context(), CloudSecret, metav1.GetOptions{})
		w.must(client.IgnoreNotFound(err))
		return string(s.Data["AWS_ACCESS_KEY_ID"])
	}
	p := w.install("hello", w.namespaceExists("web"))
	w.until("the Secret is copied", func() bool { return copied() == "canary" })
	secret.Data["AWS_ACCESS_KEY_ID"] = []byte("canary-2")
	w.must(w.client.Update(t.Context(), secret))
	w.until("the copy is rotated", func() bool { return copied() == "canary-2" })
	w.must(w.client.Delete(t.Context(), p))
	w.until("the copy is deleted with the last package", func() bool { return copied() == "" })
	w.must(w.client.Delete(t.Context(), secret))
}

func boundTo(namespaces string) map[string]string {
	return map[string]string{anywherev1.CredentialsNamespacesAnnotation: namespaces}
}

// TestSharedCredentialsAreBoundToNamespaces installs a package to obtain the shared credentials.
func TestSharedCredentialsAreBoundToNamespaces(t *testing.T) {
	w := newWorldAlone(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start()
	w.active(w.bundle(1))
	cloud := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: CloudSecret}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"mirror.test":{"password":"canary-cloud"}}}`)},
	}
	login := w.mirrored("canary")
	login.Namespace = packagesv1.Namespace
	web := w.namespaceExists("web")
	for _, s := range []*corev1.Secret{login, cloud} {
		w.must(w.client.Create(t.Context(), s))
		t.Cleanup(func() { _ = w.client.Delete(context.Background(), s) })
	}
	bind := func(namespaces string) {
		for _, s := range []*corev1.Secret{login, cloud} {
			s.Annotations = boundTo(namespaces)
			w.must(w.client.Update(t.Context(), s))
		}
	}
	none := func() bool { return len(w.copies()) == 0 && w.made() == nil }
	w.install("hello", web)
	w.await("the missing binding is reported", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.CredentialsSynced, packagesv1.NotBoundReason, `may not be used by clusters in namespace "fleet"; ask an administrator`)
	})
	if !none() {
		t.Error("credentials that are bound to no namespace were copied")
	}
	bind("fleet-2, others")
	w.await("other namespaces are no problem", func(o *packagesv1.PackageBundleController) bool {
		return meta.FindStatusCondition(o.Status.Conditions, packagesv1.CredentialsSynced) == nil
	})
	if !none() {
		t.Error("credentials of other namespaces were copied")
	}
	bind("others,fleet")
	w.until("the credentials are copied", func() bool {
		c := w.copies()
		return c[web] == "canary" && c[packagesv1.Namespace] == "canary-cloud" && w.made() != nil
	})
	bind("others")
	w.until("the credentials are withdrawn", none)
}

func TestCredentialsOfACapturedNamespaceAreNotCopied(t *testing.T) {
	w := newWorldAlone(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	captured := clusterOf(w)
	before := captured.DeepCopy()
	captured.Labels = owner.Labels(&metav1.ObjectMeta{Namespace: "team", Name: w.name})
	captured.Annotations = map[string]string{anywherev1.ClusterUIDAnnotation: "one"}
	w.must(w.client.Patch(t.Context(), captured, client.MergeFrom(before))) // Cluster API changes it, too
	w.start(func(s *packagesv1.PackageBundleControllerSpec) { s.ClusterNamespace = "fleet" })
	w.active(w.bundle(1))
	web := w.namespaceExists("web")
	w.install("hello", web)
	shared := w.mirrored("canary-shared")
	shared.Namespace, shared.Annotations = packagesv1.Namespace, boundTo("fleet")
	for _, s := range []*corev1.Secret{w.mirrored("canary-own"), shared} {
		w.must(w.client.Create(t.Context(), s))
		t.Cleanup(func() { _ = w.client.Delete(context.Background(), s) })
	}
	w.until("the cluster gets what it may use", func() bool { return w.copies()[web] == "canary-shared" })
	if w.made() != nil {
		t.Error("credentials were written to the namespace of others")
	}
	namespace := &corev1.Namespace{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Name: packagesv1.NamespacePrefix + w.name}, namespace))
	namespace.Annotations = captured.Annotations
	w.must(w.client.Update(t.Context(), namespace))
	w.until("an administrator gives it the namespace", func() bool { return w.copies()[web] == "canary-own" })
}

func TestMirrorCredentialsAreUsedForTheRegistry(t *testing.T) {
	for name, trust := range map[string]func(*world, *corev1.Secret){
		"CA":       func(w *world, s *corev1.Secret) { s.Data["CACERTCONTENT"] = w.registry.CA },
		"insecure": func(_ *world, s *corev1.Secret) { s.Data["INSECURE"] = []byte("true") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.registry = artifacttest.NewRegistry(t, artifacttest.RegistryOptions{
				ServerOptions: artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "canary-2"},
			})
			w.publish(latest, w.bundle(1), "1.0.0")
			w.connect()
			w.start(every(time.Hour))
			w.await("the registry is not trusted", func(o *packagesv1.PackageBundleController) bool {
				return has(o, packagesv1.RegistryReachable, packagesv1.UnreachableReason, "certificate")
			})
			secret := w.mirrored("canary-1")
			secret.Data["ENDPOINT"], secret.Data["INSECURE"] = []byte(w.registry.Host), nil
			trust(w, secret)
			w.must(w.client.Create(t.Context(), secret))
			w.await("access is denied", func(o *packagesv1.PackageBundleController) bool {
				return has(o, packagesv1.RegistryReachable, "AccessDenied", "401")
			})
			secret.Data["PASSWORD"] = []byte("canary-2")
			w.must(w.client.Update(t.Context(), secret))
			w.active(w.bundle(1))
		})
	}
}

func TestInvalidMirrorIsReported(t *testing.T) {
	w := running(t)
	secret := w.mirrored("canary")
	secret.Data["CACERTCONTENT"] = []byte("canary")
	w.must(w.client.Create(t.Context(), secret))
	w.await("the problem is reported", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.CredentialsSynced, packagesv1.SyncFailedReason, "CACERTCONTENT contains no certificate")
	})
}

func TestDeletionRemovesCredentials(t *testing.T) {
	w := running(t)
	web := w.namespaceExists("web")
	w.must(w.client.Create(t.Context(), w.mirrored("canary")))
	w.install("hello", web)
	w.until("the credentials are copied", func() bool { return w.copies()[web] == "canary" })
	w.must(w.client.Delete(t.Context(), w.get()))
	w.until("the object is deleted", func() bool { return w.get() == nil })
	if len(w.copies()) > 0 || w.made() != nil {
		t.Error("the credentials still exist, want them deleted")
	}
}

func TestUnreachableClusterDoesNotBlockDeletion(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"unreachable": func(w *world) { w.ways.set(w.cluster(), nil) },
		"deleted": func(w *world) {
			cluster := clusterOf(w)
			w.must(w.client.Delete(w.Context(), cluster))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			web := w.namespaceExists("web")
			w.must(w.client.Create(t.Context(), w.mirrored("canary")))
			w.install("hello", web)
			w.until("the credentials are copied", func() bool { return w.copies()[web] == "canary" })
			lose(w)
			w.await("the cluster is disconnected", func(o *packagesv1.PackageBundleController) bool {
				return o.Status.State == packagesv1.ControllerDisconnected
			})
			w.must(w.client.Delete(t.Context(), w.get()))
			w.until("the object is deleted", func() bool { return w.get() == nil })
			abandoned := func() bool { return strings.Contains(w.events.Of(w.name), "Abandoned: ") }
			if name == "unreachable" {
				w.until("the event is recorded", abandoned)
			} else if abandoned() {
				t.Error("an event reports that credentials were abandoned")
			}
			if w.made() != nil {
				t.Error("the Secret on the management plane still exists, want it deleted")
			}
		})
	}
}
