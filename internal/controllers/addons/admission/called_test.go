package admission

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// calls are the webhooks called since the last read, such as "mutate helmchartproxy".
type calls struct {
	mu  sync.Mutex
	all []string
}

// ServeHTTP allows everything.
func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	verb, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "-")
	c.mu.Lock()
	c.all = append(c.all, verb+" "+rest[strings.LastIndex(rest, "-")+1:])
	c.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// take returns each webhook once: an API server with a stale cache calls mutating webhooks again.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Compact(slices.Sorted(slices.Values(c.all)))
	c.all = nil
	return out
}

// shipped installs the webhooks of add-ons as shipped, restricted to one namespace.
func shipped(t *testing.T, c ctrlclient.Client, namespace string, to *httptest.Server) {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw}))
	for _, m := range config.Webhooks() {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(m.Data, &object.Object); err != nil {
			t.Fatal(err)
		}
		all, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		var ours []any
		for _, hook := range all {
			hook := hook.(map[string]any)
			path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			if strings.Contains(path, "-addons-") {
				hook["clientConfig"] = map[string]any{"url": to.URL + path, "caBundle": ca}
				hook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}
				ours = append(ours, hook)
			}
		}
		object.Object["webhooks"] = ours
		object.SetName(namespace + "-" + object.GetName())
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	}
}

func TestWebhooksAreCalledOnlyWhenNeeded(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	if err := addonsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := ctrlclient.New(server.Config, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns, called := server.Namespace(t), &calls{}
	to := httptest.NewTLSServer(called)
	defer to.Close()
	shipped(t, c, ns, to)
	chart, incomplete, release := good(), &addonsv1.HelmReleaseProxy{}, &addonsv1.HelmReleaseProxy{}
	chart.Namespace = ns
	for name, r := range map[string]*addonsv1.HelmReleaseProxy{"incomplete": incomplete, "release": release} {
		r.Namespace, r.Name = ns, name
		r.Spec.ChartName, r.Spec.RepoURL, r.Spec.ClusterRef.Name = "x", "https://charts.example.com", "c"
	}
	release.Spec.ReleaseNamespace = "kube-system"
	awaitCalls(t, called, func() error { return c.Create(t.Context(), chart.DeepCopy(), ctrlclient.DryRunAll) })
	for _, tc := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"a new chart", func() error { return c.Create(t.Context(), chart) }, []string{"mutate helmchartproxy", "validate helmchartproxy"}},
		{"a chart's finalizer", func() error { chart.Finalizers = []string{"test/hold"}; return c.Update(t.Context(), chart) }, nil},
		{"a chart's status", func() error { chart.Status.ObservedGeneration = 1; return c.Status().Update(t.Context(), chart) }, nil},
		{"a chart's spec", func() error { chart.Spec.Version = "2"; return c.Update(t.Context(), chart) }, []string{"mutate helmchartproxy", "validate helmchartproxy"}},
		{"a new release without a namespace", func() error { return c.Create(t.Context(), incomplete) }, []string{"mutate helmreleaseproxy", "validate helmreleaseproxy"}},
		{"a new release", func() error { return c.Create(t.Context(), release) }, []string{"validate helmreleaseproxy"}},
		{"a release's annotation", func() error { release.Annotations = map[string]string{"a": "b"}; return c.Update(t.Context(), release) }, nil},
		{"a release's status", func() error { release.Status.Revision = 1; return c.Status().Update(t.Context(), release) }, nil},
		{"a release's spec", func() error { release.Spec.Values = "a: b"; return c.Update(t.Context(), release) }, []string{"validate helmreleaseproxy"}},
	} {
		if err := tc.do(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, called.take()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// awaitCalls waits until the API server uses both configurations.
func awaitCalls(t *testing.T, called *calls, do func() error) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := do()
		return len(called.take()) == 2, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
