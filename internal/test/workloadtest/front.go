package workloadtest

import (
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Front is a proxy before an API server for clients in another process. It counts every request,
// including watches, and can stop responding.
type Front struct {
	// Config connects to the server through the front, with the credentials of its user.
	Config *rest.Config

	mu       sync.Mutex
	requests []string
	hanging  chan struct{}
}

// NewFront starts a front that stops with the test.
func NewFront(t testing.TB, to *rest.Config) *Front {
	t.Helper()
	f := &Front{}
	f.Config = Before(t, to, func(behind *httputil.ReverseProxy) http.Handler { return f.counted(behind) })
	t.Cleanup(f.Resume)
	return f
}

func (f *Front) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hanging := f.recordRequest(r); hanging != nil {
			select {
			case <-hanging:
			case <-r.Context().Done():
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (f *Front) recordRequest(r *http.Request) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	return f.hanging
}

// Requests returns the requests since the last call, such as "GET /api/v1/namespaces?watch=true".
func (f *Front) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// Hang accepts requests without responding, until Resume. Open watches stay silent only while
// nothing changes.
func (f *Front) Hang() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hanging == nil {
		f.hanging = make(chan struct{})
	}
}

// Resume ends Hang. Pending requests get a response.
func (f *Front) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hanging != nil {
		close(f.hanging)
		f.hanging = nil
	}
}
