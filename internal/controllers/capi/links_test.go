package capi

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// hostile runs an API server and returns a kubeconfig for it.
func hostile(t *testing.T, handle http.HandlerFunc) []byte {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Appendf(nil, `{
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"token": "t"}}],
		"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"
	}`, server.URL, base64.StdEncoding.EncodeToString(ca))
}

// TestWorkloadClusterCannotFillTheMemory answers the first request of upstream's client with
// compressed zeros. The connection has to be cut long before their end.
func TestWorkloadClusterCannotFillTheMemory(t *testing.T) {
	const blocks = 256
	var block bytes.Buffer
	z, err := gzip.NewWriterLevel(&block, gzip.HuffmanOnly) // so large that no buffer has room for all of it
	must(t, err)
	_, err = z.Write(make([]byte, 1<<20))
	must(t, errors.Join(err, z.Close()))
	var sent, cut atomic.Int64
	f := setup(t)
	f.register(t, hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		for n := range int64(blocks) { // Several compressed files in a row are one file.
			if _, err := w.Write(block.Bytes()); err != nil {
				cut.Store(n)
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
		sent.Store(1)
	}))
	eventually(t, func() error {
		if cut.Load()+sent.Load() == 0 {
			return errors.New("no request")
		}
		return nil
	})
	if sent.Load() != 0 {
		t.Errorf("the manager read all %d MiB of a response", blocks)
	}
}

// TestRedirectOfAWorkloadClusterIsNotFollowed redirects upstream's client to another server, as an
// attacker would to reach services of the management network.
func TestRedirectOfAWorkloadClusterIsNotFollowed(t *testing.T) {
	var asked, reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	f := setup(t)
	f.register(t, hostile(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, inside.URL, http.StatusFound)
	}))
	eventually(t, func() error {
		if asked.Load() < 2 { // The second attempt begins after the first one has ended.
			return errors.New("no request")
		}
		return nil
	})
	if reached.Load() != 0 {
		t.Error("the manager followed a redirect to another server")
	}
}

// TestRedirectsOfAWorkloadClusterLeadNowhere redirects upstream's client to the address that links
// has for another cluster, and to the API server itself, which the client would reach without
// limits.
func TestRedirectsOfAWorkloadClusterLeadNowhere(t *testing.T) {
	var second atomic.Int64
	l := newLinks()
	connect := func(name string, handle http.HandlerFunc) *httptest.Server {
		server := httptest.NewServer(handle)
		t.Cleanup(server.Close)
		_, err := l.connect(t.Context(), client.ObjectKey{Namespace: "team-a", Name: name}, &rest.Config{Host: server.URL})
		must(t, err)
		return server
	}
	var to string
	one := connect("one", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			second.Add(1)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	connect("two", func(http.ResponseWriter, *http.Request) { second.Add(1) })
	for name, target := range map[string]string{
		"another cluster":                "/two/api/v1/nodes/x",
		"another cluster with a scheme":  l.scheme + "://team-a/two/api/v1/nodes/x",
		"the same cluster":               "/one/api/v1/nodes/x",
		"the same server without limits": one.URL + "/api/v1/nodes/x",
	} {
		to = target
		response, err := http.DefaultClient.Post(l.scheme+"://team-a/one/", "application/json", strings.NewReader("{}"))
		if err == nil {
			response.Body.Close()
		}
		var redirect *bounded.RedirectError
		if !errors.As(err, &redirect) || second.Swap(0) != 0 {
			t.Errorf("%s: got error %v, want a %T", name, err, redirect)
		}
	}
}

func TestConnectionsHaveLimits(t *testing.T) {
	f := setup(t)
	key := f.connect(t)
	config, err := f.wiring.workloads.GetRESTConfig(t.Context(), key)
	must(t, err)
	if config.Host != f.server.Config.Host || config.BearerToken != f.server.Config.BearerToken || !strings.Contains(config.UserAgent, userAgent) {
		t.Errorf("got host %q, user agent %q", config.Host, config.UserAgent)
	}
	if config.WrapTransport == nil {
		t.Error("the configuration has no limits")
	}
	must(t, f.live.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: f.meta(key.Name)}))
	eventually(t, func() error {
		if f.wiring.links.get(key) != nil {
			return errors.New("the link is still open")
		}
		return nil
	})
}

func TestLinkKeepsPathAndQuery(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.RequestURI() }))
	t.Cleanup(server.Close)
	l := newLinks()
	c := &http.Client{Transport: http.DefaultTransport}
	for _, tt := range []struct{ base, path, want string }{
		{"/behind", "/api/v1/a%2Fb?watch=1&limit=2", "/behind/api/v1/a%2Fb?watch=1&limit=2"},
		{"", "/version?timeout=5s", "/version?timeout=5s"},
		{"/", "/", "/"},
	} {
		_, err := l.connect(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "one.two"}, &rest.Config{Host: server.URL + tt.base})
		must(t, err)
		response, err := c.Get(l.scheme + "://team-a/one.two" + tt.path)
		must(t, err)
		response.Body.Close()
		if got != tt.want {
			t.Errorf("requested %q, want %q", got, tt.want)
		}
	}
	response, err := c.Get(l.scheme + "://team-a/other/api")
	if err == nil {
		response.Body.Close()
		t.Error("reached an unknown cluster")
	}
}
