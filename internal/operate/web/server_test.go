package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/operate/inspect"
)

// newServer returns a server on loopback that isn't started.
func newServer(t *testing.T) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s, err := New(&inspect.Plane{}, listener)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestServesOnLoopbackOnly(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, err := New(&inspect.Plane{}, listener); err == nil || !strings.Contains(err.Error(), "loopback only") {
		t.Errorf("a server on all addresses: %v", err)
	}
}

func TestURLHasTheTokenInItsFragment(t *testing.T) {
	s := newServer(t)
	before, token, _ := strings.Cut(s.URL(), "#")
	if before != "http://"+s.listener.Addr().String()+"/" || !strings.HasPrefix(token, "token=") || len(token) < 20 {
		t.Errorf("got %s", s.URL())
	}
}

func TestEverythingButThePageRequiresASession(t *testing.T) {
	s := newServer(t)
	handler := s.handler()
	for path, want := range map[string]int{
		"GET /":                                   200,
		"GET /main.js":                            200,
		"GET /clusters/drover/a/b":                200,
		"GET /secret.txt":                         404,
		"GET /api/stream":                         401,
		"GET /api/plane":                          401,
		"GET /api/addons":                         401,
		"GET /api/server":                         401,
		"GET /api/machines":                       401,
		"GET /api/git":                            401,
		"GET /api/anything":                       401,
		"GET /api/clusters/drover/a/b":            401,
		"GET /api/clusters/drover/a/b/kubeconfig": 401,
		"POST /api/clusters/drover/a/b/do":        401,
		"GET /api/clusters/drover/a/b/audit":      401,
		"GET /api/addons/a/b":                     401,
		"POST /api/addons/a/b/do":                 401,
		"DELETE /main.js":                         405,
		"POST /api/session":                       400,
	} {
		method, address, _ := strings.Cut(path, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, address, nil)
		r.Host = s.listener.Addr().String()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}

func TestUnchangedFilesAreNotSentAgain(t *testing.T) {
	w := httptest.NewRecorder()
	serveFiles(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/main.js", nil))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/main.js", nil)
	r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	again := httptest.NewRecorder()
	serveFiles(again, r)
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("status %d with %d bytes", again.Code, again.Body.Len())
	}
}
