package packages_test

import (
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
)

// kubeconfig replaces the kubeconfig of a cluster.
func (w *world) kubeconfig(cluster int, config *rest.Config) {
	w.Helper()
	text, err := clientcmd.Write(*kubetest.AsKubeconfig(config))
	w.must(err)
	secret := &corev1.Secret{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.KubeconfigNamespace, Name: w.clusters[cluster] + "-kubeconfig"}, secret))
	secret.Data["value"] = text
	w.must(w.Update(w.Context(), secret))
}

func TestReplacedKubeconfigIsUsedAfterTheOldOneIsRevoked(t *testing.T) {
	w := newWorld(t)
	revoked := &atomic.Bool{}
	w.through = func(to *rest.Config) *rest.Config {
		if to != servers.workloads.All()[1].Config {
			return to
		}
		return workloadtest.Before(t, to, func(behind *httputil.ReverseProxy) http.Handler {
			return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if revoked.Load() {
					http.Error(out, "revoked", http.StatusUnauthorized)
					return
				}
				behind.ServeHTTP(out, r)
			})
		})
	}
	w.begin()
	defer w.clean()
	w.use(1, w.publish(1, pack("hello", "0.1.0", w.chart("hello", "0.1.0"))).Name)
	p := w.install(1, "my", "hello")
	w.awaitInstalled(p, "0.1.0")

	w.kubeconfig(1, servers.workloads.All()[1].Config)
	revoked.Store(true)
	began := time.Now()
	w.must(w.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"config":"title: welcome\n"}}`))))
	w.until("the new values are installed", func() bool { return w.text(1, "my") == "welcome 0.1.0 images.example.com" })
	t.Logf("the new kubeconfig was used after %s", time.Since(began).Round(time.Millisecond))
	w.awaitInstalled(p, "0.1.0")
}
