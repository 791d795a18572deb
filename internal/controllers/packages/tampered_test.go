package packages_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// forger is a proxy in front of the registry that returns other content for some paths.
type forger struct {
	host string
	ca   []byte
	// instead maps paths to the paths whose content is returned.
	instead map[string]string
	// spoil changes responses if it is set.
	spoil atomic.Pointer[func(*http.Response) error]
}

func (w *world) forger() *forger {
	w.Helper()
	l := &forger{instead: map[string]string{}}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.registry.CA)
	behind := &url.URL{Scheme: "https", Host: w.registry.Host}
	front := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			if to, ok := l.instead[r.In.URL.Path]; ok {
				r.Out.URL.Path = to
			}
		},
		ModifyResponse: func(r *http.Response) error {
			for _, to := range l.instead {
				if r.Request.URL.Path == to {
					r.Header.Del("Docker-Content-Digest") // it would reveal the change
				}
			}
			if spoil := l.spoil.Load(); spoil != nil { //nolint:bodyclose // the receiver closes it
				return (*spoil)(r)
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server := httptest.NewTLSServer(front)
	w.Cleanup(server.Close)
	l.host = server.Listener.Addr().String()
	l.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return l
}

func TestChartWithAnotherDigestIsNotInstalled(t *testing.T) {
	w := newWorld(t)
	l := w.forger()
	w.flags = w.settings(l.host, l.ca)
	good, evil := w.chart("hello", "0.1.0"), w.chart("hello", "6.6.6")
	blob := func(manifest string) string { return w.layer("hello", manifest) }
	l.instead["/v2/charts/other/manifests/"+good] = "/v2/charts/hello/manifests/" + evil
	l.instead["/v2/charts/hello/blobs/"+blob(good)] = "/v2/charts/hello/blobs/" + blob(evil)
	w.begin()
	defer w.clean()
	b := w.publish(1, pack("hello", "0.1.0", good), pack("other", "0.1.0", good), pack("moved", "0.1.0", evil[:len(evil)-4]+"0000"))
	w.use(0, b.Name)
	var packs []*packagesv1.Package
	for _, name := range []string{"hello", "other", "moved"} {
		p := &packagesv1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[0] + "-" + name},
			Spec:       packagesv1.PackageSpec{PackageName: name, TargetNamespace: "from-chart"},
		}
		w.must(w.Create(t.Context(), p))
		packs = append(packs, p)
	}
	for i, text := range []string{"error verifying sha256 checksum", "does not match requested digest", "not found"} {
		w.until(packs[i].Name+" is rejected", func() bool {
			return w.Get(t.Context(), client.ObjectKeyFromObject(packs[i]), packs[i]) == nil && strings.Contains(packs[i].Status.Detail, text)
		})
		t.Logf("%s: %s", packs[i].Name, packs[i].Status.Detail)
		if packs[i].Status.State != packagesv1.StateInstalling {
			t.Errorf("%s is %s", packs[i].Name, packs[i].Status.State)
		}
	}
	for _, release := range []string{"hello", "other", "moved"} {
		if got := w.text(0, release); got != "" || len(w.records(0, release)) > 0 {
			t.Errorf("%s was installed: %q, %v", release, got, w.records(0, release))
		}
	}
}
