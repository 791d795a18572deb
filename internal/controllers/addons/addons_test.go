package addons_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

type spec = addonsv1.HelmChartProxySpec

func TestChartFromRepositoryWithPasswordAndCustomCA(t *testing.T) {
	w := newWorldWith(t, managertest.Checked)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "secret"})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	repository.Publish("greeter", "1.1.0", greeter(t, "1.1.0"))
	w.secret("login", corev1.SecretTypeBasicAuth, map[string][]byte{"username": []byte("drover"), "password": []byte("secret")})
	w.secret("ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": repository.Access().CA})
	p := w.proxy("hello", repository.URL, func(s *spec) {
		s.ValuesTemplate = "name: {{ .Cluster.metadata.name }}\n"
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "config.json"}
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
	})
	w.create(p)
	w.awaitReady(p, 3)
	if diff := cmp.Diff([]string{"hello, a from 1.0.0", "hello, b from 1.0.0", "hello, c from 1.0.0"}, w.text("hello")); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if n := repository.Count(".tgz"); n != 1 {
		t.Errorf("the chart was downloaded %d times for three clusters, want once", n)
	}

	t.Log("values are changed, then the version")
	w.change(p, func(s *spec) { s.ValuesTemplate = "greeting: welcome\nname: {{ .Cluster.metadata.name }}\n" })
	w.until("values arrive", func() bool { return w.text("hello")[2] == "welcome, c from 1.0.0" && w.ready(p) })
	w.change(p, func(s *spec) { s.Version = "1.1.0" })
	w.until("the version arrives", func() bool { return w.text("hello")[0] == "welcome, a from 1.1.0" && w.ready(p) })
	if diff := cmp.Diff([]string{"1 superseded", "2 superseded", "3 deployed"}, w.records(workloads.All()[0], "hello")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}

	t.Log("a cluster that is not selected any more loses the release")
	w.relabel("b", map[string]string{"all": "no"})
	w.until("the release is gone from b", func() bool { return w.text("hello")[1] == "" && len(w.releases()) == 2 })
	if got := w.records(workloads.All()[1], "hello"); len(got) != 0 {
		t.Errorf("records on b: %v", got)
	}
	if err := w.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.until("all is gone", func() bool { return apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(p), p)) })
	if diff := cmp.Diff([]string{"", "", ""}, w.text("hello")); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func (w *world) relabel(cluster string, labels map[string]string) {
	w.Helper()
	patch := []string{}
	for k, v := range labels {
		patch = append(patch, fmt.Sprintf("%q:%q", k, v))
	}
	c := clusterNamed(w.namespace, cluster)
	if err := w.Patch(w.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{`+strings.Join(patch, ",")+`}}}`))); err != nil {
		w.Fatal(err)
	}
}

func TestChartFromRegistryWithCredentials(t *testing.T) {
	w := newWorld(t)
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{
		ServerOptions: artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "secret"},
	})
	registry.Push(t, artifacttest.Package{Name: "greeter", Version: "1.0.0", Archive: greeter(t, "1.0.0")})
	w.secret("login", corev1.SecretTypeOpaque, map[string][]byte{"config.json": registry.DockerConfig(t)})
	w.secret("ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": registry.Access().CA})
	p := w.proxy("hello", registry.URL, func(s *spec) {
		s.Version = "^1.0.0"
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "config.json"}
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
	})
	w.create(p)
	w.awaitReady(p, 3)
	if diff := cmp.Diff([]string{"hello, nobody from 1.0.0", "hello, nobody from 1.0.0", "hello, nobody from 1.0.0"}, w.text("hello")); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// canary is a secret that must not leak.
var canary = fmt.Sprintf("canary-%016x", rand.Uint64())

func TestValuesAreNotDisclosed(t *testing.T) {
	w := newWorld(t)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true, Username: "drover", Password: canary})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	repository.Publish("broken", "1.0.0", artifacttest.Chart(t, "broken", "1.0.0", map[string]string{
		"templates/bad.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: broken, labels: {x: '!{{ .Values.password }}!'}}\n",
	}))
	repository.Publish("failing", "1.0.0", artifacttest.Chart(t, "failing", "1.0.0", map[string]string{
		"templates/bad.yaml": `{{ fail (printf "no good: %s" .Values.password) }}`,
	}))
	w.secret("login", corev1.SecretTypeBasicAuth, map[string][]byte{"username": []byte("drover"), "password": []byte(canary)})
	w.secret("ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": repository.Access().CA})
	w.secret("values", corev1.SecretTypeOpaque, map[string][]byte{"values.yaml": []byte("password: " + canary + "\n")})
	private := func(s *spec) {
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "config.json"}
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
		s.ValuesFrom = []addonsv1.ValuesSource{{Kind: "Secret", Name: "values"}}
	}
	good := w.proxy("hello", repository.URL, private)
	w.create(good)
	for _, name := range []string{"broken", "failing"} {
		w.create(w.proxy(name, repository.URL, private, func(s *spec) { s.ChartName = name }))
	}
	w.awaitReady(good, 3)
	w.until("the broken ones have failed", func() bool {
		failed := 0
		for _, r := range w.releases() {
			if r.Status.Attempt != nil {
				failed++
			}
		}
		return failed == 6
	})
	secret, err := workloads.All()[0].Clientset(t).CoreV1().Secrets(w.target).Get(t.Context(), "hello", metav1.GetOptions{})
	if err != nil || string(secret.Data["password"]) != canary {
		t.Fatalf("the value did not arrive: %v", err)
	}
	w.searchCanary()
}

// searchCanary searches for the canary in everything that users and programs can see.
func (w *world) searchCanary() {
	w.Helper()
	look := func(where string, text []byte) {
		if i := bytes.Index(text, []byte(canary)); i >= 0 {
			w.Errorf("%s has it: %s", where, text[max(0, i-200):min(len(text), i+100)])
		}
	}
	look("the manager's log", []byte(w.manager.Log()))
	look("the manager's arguments", w.arguments())
	events := &corev1.EventList{}
	if err := w.List(w.Context(), events, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	for _, e := range events.Items {
		look("event "+e.Name, []byte(e.Message))
	}
	look("a condition", []byte(w.describe()))
	for _, r := range w.releases() {
		look("HelmReleaseProxy "+r.Name, fmt.Append(nil, r))
	}
	for _, dir := range []string{w.cache, w.temp} {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil //nolint:nilerr // removed concurrently
			}
			text, _ := os.ReadFile(path)
			look("file "+path, text)
			return nil
		})
	}
}

func TestRepeatedlyKilledManagerLosesNothing(t *testing.T) {
	const proxies = 67 // on three clusters
	w := newWorld(t)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	w.secret("ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": repository.Access().CA})
	for i := range proxies {
		w.create(w.proxy(fmt.Sprintf("hello-%02d", i), repository.URL, func(s *spec) {
			s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
		}))
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	deployed := func() int {
		n := 0
		for _, r := range w.releases() {
			if r.Status.Status == "deployed" {
				n++
			}
		}
		return n
	}
	for range 6 {
		at := deployed() + random.IntN(25)
		w.until("some more are installed", func() bool { return deployed() >= min(at, 3*proxies) })
		w.manager.Kill()
		w.start()
	}
	w.until("all are installed", func() bool { return deployed() == 3*proxies })
	for _, s := range workloads.All() {
		for i := range proxies {
			if diff := cmp.Diff([]string{"1 deployed"}, w.records(s, fmt.Sprintf("hello-%02d", i))); diff != "" {
				t.Errorf("records of hello-%02d (-want +got):\n%s", i, diff)
			}
		}
	}
}

func TestReconcileStopsWhileUpstreamControllerRuns(t *testing.T) {
	w := newWorld(t)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "controller-leader-election-caaph"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("caaph-controller-manager-0"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	w.server.Clientset(t)
	if _, err := w.server.Clientset(t).CoordinationV1().Leases(w.namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.server.Clientset(t).CoordinationV1().Leases(w.namespace).Delete(w.background(), lease.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	w.manager.Kill()
	second := w.launch()
	<-second.Done()
	if !strings.Contains(second.Log(), "another HelmChartProxy controller is running") {
		t.Errorf("the manager ended with %d and said:\n%s", second.ExitCode(), second.Log())
	}
}
