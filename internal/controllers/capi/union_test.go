package capi

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// fixture is a manager with our caches and without reconcilers, so that only the test changes
// objects.
type fixture struct {
	server    *kubetest.Server
	wiring    *wiring
	live      client.Client
	namespace string
}

func setup(t *testing.T) *fixture {
	t.Helper()
	return setupBehind(t, nil)
}

// setupBehind is setup with a proxy between the manager and the API server.
func setupBehind(t *testing.T, between func(http.RoundTripper) http.RoundTripper) *fixture {
	t.Helper()
	f := &fixture{server: kubetest.Shared(t, install.Options{})}
	f.withoutAdmission(t)
	f.namespace = f.server.Namespace(t)
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, AddToScheme(scheme))
	var err error
	f.live, err = client.New(f.server.Config, client.Options{Scheme: scheme})
	must(t, err)

	o := Options{Concurrency: 10, SyncPeriod: time.Hour}
	m := ManagerOptions(o)
	m.Scheme = scheme
	m.Metrics = metricsserver.Options{BindAddress: "0"}
	m.GracefulShutdownTimeout = ptr.To(kubetest.Patience)
	m.Controller.SkipNameValidation = ptr.To(true)
	cfg := rest.CopyConfig(f.server.Config)
	if between != nil {
		cfg.Wrap(between)
	}
	mgr, err := reconcile.NewManager(cfg, m)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	f.wiring, err = newWiring(ctx, mgr, o)
	must(t, err)
	must(t, WarmCaches(ctx, mgr))
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	return f
}

// withoutAdmission removes the webhook configurations, which nothing serves here.
func (f *fixture) withoutAdmission(t *testing.T) {
	t.Helper()
	hooks := f.server.Clientset(t).AdmissionregistrationV1()
	must(t, client.IgnoreNotFound(hooks.MutatingWebhookConfigurations().Delete(t.Context(), config.MutatingWebhooks, metav1.DeleteOptions{})))
	must(t, client.IgnoreNotFound(hooks.ValidatingWebhookConfigurations().Delete(t.Context(), config.ValidatingWebhooks, metav1.DeleteOptions{})))
}

func (f *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}
}

func (f *fixture) create(t *testing.T, obj client.Object) {
	t.Helper()
	must(t, f.live.Create(t.Context(), obj))
}

// await reads obj through reader until it exists.
func await(t *testing.T, reader client.Reader, obj client.Object) {
	t.Helper()
	eventually(t, func() error { return reader.Get(t.Context(), client.ObjectKeyFromObject(obj), obj) })
}

func TestSharedCacheServesEveryReconciler(t *testing.T) {
	f := setup(t)
	infrastructure := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Thing", Name: "x"}
	spec := clusterv1.MachineSpec{
		ClusterName: "c", InfrastructureRef: infrastructure, ProviderID: "thing://1",
		Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
	}

	t.Run("the spec of a worker's Machine, and its managed fields", func(t *testing.T) {
		f.create(t, &clusterv1.Machine{ObjectMeta: f.meta("worker"), Spec: spec})
		got := &clusterv1.Machine{ObjectMeta: f.meta("worker")}
		await(t, f.wiring.client, got)
		if got.Spec.ProviderID != "thing://1" || len(got.ManagedFields) == 0 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the spec of a MachineSet", func(t *testing.T) {
		f.create(t, &clusterv1.MachineSet{ObjectMeta: f.meta("set"), Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: ptr.To(int32(3)),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"set": "x"}},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"set": "x"}}, Spec: spec},
		}})
		got := &clusterv1.MachineSet{ObjectMeta: f.meta("set")}
		await(t, f.wiring.client, got)
		if got.Spec.Replicas == nil || *got.Spec.Replicas != 3 {
			t.Errorf("got %+v", got.Spec)
		}
	})
	t.Run("the KubeadmConfig of a worker", func(t *testing.T) {
		f.create(t, &bootstrapv1.KubeadmConfig{ObjectMeta: f.meta("worker"), Spec: bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.CloudConfig}})
		got := &bootstrapv1.KubeadmConfig{ObjectMeta: f.meta("worker")}
		await(t, f.wiring.client, got)
		if got.Spec.Format != bootstrapv1.CloudConfig {
			t.Errorf("got %+v", got.Spec)
		}
	})
	for _, purpose := range []string{"kubeconfig", "ca", "etcd", "sa", "proxy", "apiserver-etcd-client"} {
		t.Run("the data of a cluster's Secret for "+purpose, func(t *testing.T) {
			f.create(t, &corev1.Secret{ObjectMeta: f.meta("c-" + purpose), Data: map[string][]byte{"value": []byte("x")}})
			got := &corev1.Secret{ObjectMeta: f.meta("c-" + purpose)}
			await(t, f.wiring.secrets, got)
			if string(got.Data["value"]) != "x" {
				t.Errorf("got %d entries", len(got.Data))
			}
		})
	}
	t.Run("not the data of a cluster's other Secrets", func(t *testing.T) {
		f.create(t, &corev1.Secret{ObjectMeta: f.meta("c-bootstrap"), Data: map[string][]byte{"value": []byte("x")}})
		got := &corev1.Secret{ObjectMeta: f.meta("c-bootstrap")}
		await(t, f.wiring.secrets, got)
		if len(got.Data) != 0 {
			t.Error("data is kept")
		}
	})
	t.Run("the metadata of a Secret of no cluster", func(t *testing.T) {
		plain := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "plain"}}
		f.create(t, plain)
		got := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "plain"}}
		got.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		await(t, f.wiring.secretMetadata, got)
	})
}

func TestCachedCRDsAreTrimmed(t *testing.T) {
	f := setup(t)
	got := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "clusters.cluster.x-k8s.io"}}
	got.SetGroupVersionKind(definitionKind)
	await(t, f.wiring.client, got)
	if len(got.ManagedFields) != 0 || got.Annotations[corev1.LastAppliedConfigAnnotation] != "" || got.Labels["cluster.x-k8s.io/provider"] == "" {
		t.Errorf("got %+v", got.ObjectMeta)
	}
}

func eventually(t *testing.T, f func() error) {
	t.Helper()
	within(t, kubetest.Patience, f)
}

func within(t *testing.T, patience time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(fmt.Errorf("after %s: %w", patience, err))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
