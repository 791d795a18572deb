package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/fleettest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// kubeconfigOf is the Secret of a cluster.
func kubeconfigOf(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name + "-kubeconfig"},
		Data:       map[string][]byte{"value": []byte(kubetest.ExampleKubeconfig(name))},
	}
}

// get sends a request about a cluster.
func (w *world) get(handler http.HandlerFunc, key Key) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/", nil)
	r.SetPathValue("kind", key.Kind)
	r.SetPathValue("namespace", key.Namespace)
	r.SetPathValue("name", key.Name)
	recorded := httptest.NewRecorder()
	handler(recorded, r)
	return recorded
}

func TestKubeconfigIsForThoseWhoMayReadTheSecret(t *testing.T) {
	objects := fleet(fleettest.Healthy).Objects(2)
	w := newWorld(t, append(objects, kubeconfigOf("ams-web-01"), kubeconfigOf("fra-batch-01")), nil)
	w.granted = func(asked *authorizationv1.ResourceAttributes) bool {
		return asked.Verb == "get" && asked.Resource == "secrets" && asked.Namespace == anywherev1.SystemNamespace && asked.Name == "ams-web-01-kubeconfig"
	}
	unusable := func(key Key) string {
		t.Helper()
		d, err := w.view.detail(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range d.Actions {
			if a.Name == actKubeconfig {
				return a.Unusable
			}
		}
		t.Fatal("there is no such action")
		return ""
	}
	allowed, denied := Key{drover, "team-web", "ams-web-01"}, Key{drover, "team-batch", "fra-batch-01"}
	if why := unusable(allowed); why != "" {
		t.Errorf("with access to the Secret, the reason is %q", why)
	}
	if why := unusable(denied); !strings.Contains(why, "may not read the kubeconfig") {
		t.Errorf("without access to the Secret, the reason is %q", why)
	}
	got := w.get(w.view.getKubeconfig, allowed)
	if got.Code != http.StatusOK || got.Body.String() != kubetest.ExampleKubeconfig("ams-web-01") || got.Header().Get("Content-Disposition") != `attachment; filename="ams-web-01.kubeconfig"` {
		t.Errorf("status %d, %v: %s", got.Code, got.Header(), got.Body)
	}
	got = w.get(w.view.getKubeconfig, denied)
	if got.Code != http.StatusForbidden || got.Header().Get("Content-Disposition") != "" || strings.Contains(got.Body.String(), "client-key-data") {
		t.Errorf("status %d, %v: %s", got.Code, got.Header(), got.Body)
	}
	if got := w.get(w.view.getKubeconfig, Key{drover, "team-web", "gone"}); got.Code != http.StatusNotFound {
		t.Errorf("a cluster that doesn't exist: status %d: %s", got.Code, got.Body)
	}
}
