package workload_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// configs returns the same server for every cluster.
type configs struct{ config atomic.Pointer[rest.Config] }

func (c *configs) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return c.config.Load(), nil
}

func leadingTo(config *rest.Config) *configs {
	c := &configs{}
	c.config.Store(config)
	return c
}

var (
	cluster = client.ObjectKey{Namespace: "default", Name: "one"}
	secrets = workload.Watch{Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Selector: "owner=helm", By: "name"}
)

// open returns a connection to a real API server, and its events.
func open(t *testing.T) (*workload.Cluster, *kubetest.Server, chan workload.Event) {
	t.Helper()
	server := kubetest.Shared(t, install.Options{})
	events := make(chan workload.Event, 1000)
	clusters := workload.New(leadingTo(server.Config), workload.Options{Notify: func(e workload.Event) { events <- e }})
	t.Cleanup(clusters.Close)
	c, err := clusters.Get(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return c, server, events
}

func await(t *testing.T, events chan workload.Event, what string, is func(workload.Event) bool) workload.Event {
	t.Helper()
	late := time.After(90 * time.Second)
	for {
		select {
		case e := <-events:
			if is(e) {
				return e
			}
		case <-late:
			t.Fatalf("no event: %s", what)
		}
	}
}

func TestWatchReportsChangesAndFindsByLabel(t *testing.T) {
	c, server, events := open(t)
	ns := server.Namespace(t)
	put := func(name, release string, labels map[string]string) {
		labels["name"] = release
		_, err := c.Kubernetes().CoreV1().Secrets(ns).Create(t.Context(),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("before", "web", map[string]string{"owner": "helm"})
	followed := c.Follow(secrets)
	await(t, events, "the watch has told all", func(e workload.Event) bool { return e.Object == nil && e.Resource == secrets.Resource })
	if !followed.Synced() {
		t.Error("the watch is not synced after it said so")
	}
	put("after", "web", map[string]string{"owner": "helm"})
	put("other", "db", map[string]string{"owner": "helm"})
	put("foreign", "web", map[string]string{"owner": "somebody"})
	await(t, events, "a Secret that was made later", func(e workload.Event) bool { return e.Object != nil && e.Object.Name == "other" })
	if n := len(followed.Find(ns, "web")); n != 2 {
		t.Errorf("found %d Secrets of the release, want 2", n)
	}
	if followed.Get(ns, "foreign") != nil {
		t.Error("the watch has a Secret that its selector does not match")
	}
	if err := c.Kubernetes().CoreV1().Secrets(ns).Delete(t.Context(), "after", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, events, "the deletion", func(e workload.Event) bool { return e.Deleted && e.Object.Name == "after" })
	if c.Follow(secrets) != followed {
		t.Error("the same watch was begun twice")
	}
}

func TestNewKindsAreDiscovered(t *testing.T) {
	c, server, events := open(t)
	c.Follow(secrets)
	await(t, events, "the watch of CRDs has told all", func(e workload.Event) bool { return e.Object == nil && e.Resource == workload.CRDs.Resource })
	kind := schema.GroupKind{Group: "test.drover.dev", Kind: "Late"}
	if _, err := c.Mapper().RESTMapping(kind, "v1"); err == nil {
		t.Fatal("the kind is known before it exists")
	}
	definitions, err := clientset.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "lates.test.drover.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lates", Singular: "late", Kind: kind.Kind, ListKind: "LateList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	if _, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		await(t, events, "a change of the CRD", func(e workload.Event) bool { return e.Object != nil && e.Object.Name == crd.Name })
		if _, err := c.Mapper().RESTMapping(kind, "v1"); err == nil {
			return
		}
	}
}

func TestDiscoveryIsCached(t *testing.T) {
	server := kubetest.Shared(t, install.Options{})
	var asked atomic.Int32
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			return next.RoundTrip(r)
		})
	})
	clusters := workload.New(leadingTo(config), workload.Options{})
	t.Cleanup(clusters.Close)
	look := func() {
		t.Helper()
		c, err := clusters.Get(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Version(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	look()
	before := asked.Load()
	for range 100 {
		look()
	}
	if n := asked.Load() - before; n != 0 {
		t.Errorf("%d requests for what was known", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSilentClusterIsAwaitedOnce(t *testing.T) {
	stop := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(stop) })
	clusters := workload.New(leadingTo(&rest.Config{Host: silent.URL}), workload.Options{RequestTimeout: 50 * time.Millisecond})
	t.Cleanup(clusters.Close)
	c, err := clusters.Get(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(); err == nil {
		t.Fatal("a silent cluster told its version")
	}
	_, err = clusters.Get(t.Context(), cluster)
	if silent := new(workload.UnreachableError); !errors.As(err, &silent) || silent.Cluster != cluster {
		t.Errorf("Get() = %v, want Unreachable", err)
	}
}

func TestNewCredentialsOpenANewConnection(t *testing.T) {
	c := leadingTo(&rest.Config{Host: "https://127.0.0.1:1", BearerToken: "old"})
	clusters := workload.New(c, workload.Options{})
	t.Cleanup(clusters.Close)
	first, err := clusters.Get(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	c.config.Store(&rest.Config{Host: "https://127.0.0.1:1", BearerToken: "old"})
	if again, _ := clusters.Get(t.Context(), cluster); again != first {
		t.Error("the same credentials made another connection")
	}
	c.config.Store(&rest.Config{Host: "https://127.0.0.1:1", BearerToken: "new"})
	if again, _ := clusters.Get(t.Context(), cluster); again == first {
		t.Error("the connection with the old credentials was used")
	}
}
