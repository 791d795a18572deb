package workloadtest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	behind := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // what a watch tells goes on at once
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	web := httptest.NewUnstartedServer(f.counted(behind))
	web.EnableHTTP2 = true
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that goes away is part of tests
	web.StartTLS()
	t.Cleanup(func() {
		f.Resume()
		web.CloseClientConnections()
		web.Close()
	})
	f.Config = &rest.Config{Host: web.URL, BearerToken: to.BearerToken, QPS: -1}
	f.Config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
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
