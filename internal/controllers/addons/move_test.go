package addons_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// elsewhere is another management plane, with a manager and without clusters.
func (w *world) elsewhere() *world {
	w.Helper()
	webhook, server := kubetest.FreeAddress(w), kubetest.Start(w)
	if err := install.Apply(w.Context(), server.Config, install.Options{WebhookURL: "https://" + webhook}); err != nil {
		w.Fatal(err)
	}
	to := worldOn(w.T, server, webhook, w.namespace)
	to.start()
	return to
}

// simulateInfrastructure simulates the infrastructure controllers of the clusters.
func (w *world) simulateInfrastructure() {
	w.Helper()
	for _, name := range []string{"a", "b", "c"} {
		c := clusterNamed(w.namespace, name)
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			w.Fatal(err)
		}
		if err := clustertest.Announce(w.Context(), w.Client, c); err != nil {
			w.Fatal(err)
		}
	}
}

// settle waits until clusters are reported as ready: a controller that observed them before may
// have written afterwards.
func (w *world) settle() {
	w.Helper()
	w.until("clusters are up", func() bool {
		for _, name := range []string{"a", "b", "c"} {
			c := clusterNamed(w.namespace, name)
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				w.Fatal(err)
			}
			if !conditions.IsTrue(c, clusterv1.ClusterControlPlaneInitializedCondition) {
				w.simulateInfrastructure()
				return false
			}
		}
		return true
	})
}

func (w *world) clusterctl() cluster.Client {
	w.Helper()
	return cluster.New(cluster.Kubeconfig{Path: kubetest.Kubeconfig(w, w.server.Config)}, nil)
}

// installed returns all objects of the releases on each cluster with their versions, which reveal
// any write.
func (w *world) installed(releases []string) []string {
	w.Helper()
	var out []string
	for i, s := range workloads.All() {
		kube := s.Clientset(w).CoreV1()
		config, err := kube.ConfigMaps(w.target).Get(w.Context(), releases[i], metav1.GetOptions{})
		if err != nil {
			w.Fatal(err)
		}
		out = append(out, "ConfigMap "+config.Name+" "+config.ResourceVersion)
		secrets, err := kube.Secrets(w.target).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			w.Fatal(err)
		}
		for _, s := range secrets.Items {
			out = append(out, "Secret "+s.Name+" "+s.ResourceVersion)
		}
	}
	return out
}

func TestClusterctlMoveLeavesReleasesUnchanged(t *testing.T) {
	from := newWorld(t)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "secret"})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	travels := map[string]string{clusterctlv1.ClusterctlMoveLabel: ""}
	from.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "login", Labels: travels}, Type: corev1.SecretTypeBasicAuth,
		Data: map[string][]byte{"username": []byte("drover"), "password": []byte("secret")},
	})
	from.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca", Labels: travels}, Data: map[string][]byte{"ca.crt": repository.Access().CA}})
	p := from.proxy("hello", repository.URL, func(s *spec) {
		s.ReleaseName, s.ValuesTemplate = "", "name: {{ .Cluster.metadata.name }}\n"
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "config.json"}
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
		s.Options.Uninstall = &addonsv1.HelmUninstallOptions{BeforeCluster: true}
	})
	from.create(p)
	from.awaitReady(p, 3)
	names := from.releaseNames()
	before := from.installed(names)
	to := from.elsewhere()
	from.settle()
	if err := from.clusterctl().ObjectMover().Move(t.Context(), from.namespace, to.clusterctl(), false); err != nil {
		t.Fatal(err)
	}
	to.simulateInfrastructure()
	to.awaitReady(p, 3)
	if diff := cmp.Diff(names, to.releaseNames()); diff != "" {
		t.Errorf("releases (-here +there):\n%s", diff)
	}
	if diff := cmp.Diff(before, to.installed(names)); diff != "" {
		t.Errorf("on the clusters (-before +after):\n%s", diff)
	}
	if left := from.releases(); len(left) != 0 {
		t.Errorf("got %d HelmReleaseProxies, want none", len(left))
	}
	if err := from.Get(t.Context(), client.ObjectKeyFromObject(p), &addonsv1.HelmChartProxy{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("HelmChartProxy: got error %v, want NotFound", err)
	}

	t.Log("the new management plane goes on with them")
	to.change(p, func(s *spec) { s.ValuesTemplate = "greeting: welcome\nname: {{ .Cluster.metadata.name }}\n" })
	to.until("values arrive", func() bool { return to.text(names[0])[0] == "welcome, a from 1.0.0" && to.ready(p) })
}

// releaseNames returns the releases on the clusters, ordered by cluster.
func (w *world) releaseNames() []string {
	w.Helper()
	by := map[string]string{}
	for _, r := range w.releases() {
		by[r.Spec.ClusterRef.Name] = r.Spec.ReleaseName
	}
	return []string{by["a"], by["b"], by["c"]}
}
