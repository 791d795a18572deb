// Package faultproxy stands between a client and an API server and injects faults: lost responses,
// errors, garbage, delays. It knows HTTP and what a write of Kubernetes is. Start with New.
package faultproxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy forwards requests with the privileges of an administrator.
type Proxy struct {
	url     string
	forward http.Handler
	current atomic.Pointer[injected]
}

// injected is a fault for as long as it is the current one.
type injected struct {
	*Fault

	until context.Context
	end   context.CancelFunc
}

// New serves until the test ends.
func New(t testing.TB, cfg *rest.Config) *Proxy {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{forward: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // events of watches are not held back
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	p.Inject(nil)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// Config is the configuration of a client behind the proxy.
func (p *Proxy) Config() *rest.Config { return &rest.Config{Host: p.url} }

// Inject replaces the current fault; nil removes it. Running watches end, so that the fault applies
// to the next ones.
func (p *Proxy) Inject(f *Fault) {
	until, end := context.WithCancel(context.Background())
	if last := p.current.Swap(&injected{Fault: f, until: until, end: end}); last != nil {
		last.end()
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	current := p.current.Load()
	if IsWatch(r) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(current.until, cancel)()
		r = r.WithContext(ctx)
	}
	if current.Fault != nil && current.strikes(r) {
		current.Strike(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// Fault is what happens to every n-th of some requests.
type Fault struct {
	Matches func(*http.Request) bool
	Every   int64
	Strike  Strike

	matched, struck atomic.Int64
}

// Struck returns how often the fault was injected.
func (f *Fault) Struck() int64 { return f.struck.Load() }

func (f *Fault) strikes(r *http.Request) bool {
	if !f.Matches(r) || f.matched.Add(1)%max(f.Every, 1) != 0 {
		return false
	}
	f.struck.Add(1)
	return true
}

// IsWatch reports whether a request is a watch.
func IsWatch(r *http.Request) bool { return r.URL.Query().Has("watch") }

// IsCall reports whether a request is not a watch.
func IsCall(r *http.Request) bool { return !IsWatch(r) }

// IsRead reports whether a request reads objects once.
func IsRead(r *http.Request) bool { return IsCall(r) && r.Method == http.MethodGet }

// IsWrite reports whether a request changes objects that controllers act on.
func IsWrite(r *http.Request) bool {
	for _, other := range []string{"/events", "/leases", "reviews"} {
		if strings.Contains(r.URL.Path, other) {
			return false
		}
	}
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

// IsCreate reports whether a request creates an object that controllers act on.
func IsCreate(r *http.Request) bool { return IsWrite(r) && r.Method == http.MethodPost }

// Kind names what a request does to which kind of object, such as "PATCH machines/status".
func Kind(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):] // after the version
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 1 {
		parts = slices.Delete(parts, 1, 2) // the name
	}
	return r.Method + " " + strings.Join(parts, "/")
}

// Strike handles a request in place of the proxy.
type Strike func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// Respond answers with a status and never forwards the request.
func Respond(status int, header http.Header, body string) Strike {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Flood answers with a string in JSON that ends after so many bytes, without the end of the JSON.
func Flood(bytes int) Strike {
	return Respond(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, `{"kind":"Cluster","metadata":{"name":"`+strings.Repeat("a", bytes))
}

// Alternate uses one strike after the other.
func Alternate(strikes ...Strike) Strike {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		strikes[int(n.Add(1))%len(strikes)](w, r, forward)
	}
}

// Delay forwards a request later.
func Delay(d time.Duration) Strike {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		time.Sleep(d)
		forward.ServeHTTP(w, r)
	}
}

// Lose forwards a request and closes the connection instead of answering.
func Lose() Strike {
	return func(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
}

// LoseWritten forwards a request. If that succeeded, it calls lost and closes the connection
// instead of answering.
func LoseWritten(lost func(*http.Request)) Strike {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		if answer.Code/100 == 2 {
			lost(r)
			panic(http.ErrAbortHandler)
		}
		Respond(answer.Code, answer.Header(), answer.Body.String())(w, r, forward)
	}
}

// Cut forwards a request and closes the connection after a time, whatever was answered until then.
func Cut(after time.Duration) Strike {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		ctx, cancel := context.WithTimeout(r.Context(), after)
		defer cancel()
		forward.ServeHTTP(w, r.WithContext(ctx))
	}
}
