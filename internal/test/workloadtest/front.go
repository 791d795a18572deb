package workloadtest

import (
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Front stands before an API server, for clients that run in another process. It counts every request, those that begin a watch as well,
// and can stop to answer.
type Front struct {
	// Config leads to the server by way of the front, for the one whom the front was made for.
	Config *rest.Config

	mu       sync.Mutex
	requests []string
	hanging  chan struct{}
}

// NewFront starts one. It ends with the test.
func NewFront(t testing.TB, to *rest.Config) *Front {
	t.Helper()
	f := &Front{}
	f.Config = Before(t, to, func(behind *httputil.ReverseProxy) http.Handler { return f.counted(behind) })
	t.Cleanup(f.Resume)
	return f
}

func (f *Front) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hanging := f.arrived(r); hanging != nil {
			select {
			case <-hanging:
			case <-r.Context().Done():
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (f *Front) arrived(r *http.Request) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	return f.hanging
}

// Requests are those that came since the last call, such as "GET /api/v1/namespaces?watch=true".
func (f *Front) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// Hang makes the front take requests and answer none of them, until Resume. Watches that are open stay silent only as long as nothing
// happens.
func (f *Front) Hang() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hanging == nil {
		f.hanging = make(chan struct{})
	}
}

// Resume makes it work again. Requests that hang are answered.
func (f *Front) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hanging != nil {
		close(f.hanging)
		f.hanging = nil
	}
}
