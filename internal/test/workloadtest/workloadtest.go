// Package workloadtest connects tests of package tools to a real API server, as a manager connects
// to a workload cluster, through a wire that counts requests and can be cut at any of them.
//
// Start with Connect.
package workloadtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/workload"
)

// Connection is a connection to a cluster that is closed with the test.
type Connection struct {
	*workload.Cluster
	*Wire

	events chan workload.Event
	close  func()
}

// Connect opens a connection.
func Connect(t testing.TB, to *rest.Config) *Connection {
	t.Helper()
	c := &Connection{Wire: &Wire{}, events: make(chan workload.Event, 10000)}
	config := rest.CopyConfig(to)
	config.Wrap(c.wrap)
	clusters := workload.New(configs{config}, workload.Options{Notify: func(e workload.Event) { c.events <- e }})
	c.close = clusters.Close
	t.Cleanup(c.Close)
	var err error
	if c.Cluster, err = clusters.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Close closes the connection before the test ends. It may be repeated.
func (c *Connection) Close() { c.close() }

type configs struct{ config *rest.Config }

func (c configs) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return c.config, nil
}

// Until waits for events of the cluster until a condition is met.
func (c *Connection) Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	timeout := time.After(90 * time.Second)
	for !holds() {
		select {
		case <-c.events:
		case <-timeout:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// ErrCut is the error of a request that was cut off.
var ErrCut = errors.New("cut off")

// Wire counts requests and cuts them off on demand. Watches are neither counted nor cut.
type Wire struct {
	mu       sync.Mutex
	requests []string
	cutAt    int
	lost     bool
	was      bool
}

func (w *Wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if ofWatch(r) {
			return next.RoundTrip(r)
		}
		cut, lost := w.recordRequest(r)
		if !cut {
			return next.RoundTrip(r)
		}
		if lost {
			if response, err := next.RoundTrip(r); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		return nil, ErrCut
	})
}

func ofWatch(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") == "true" || query.Has("sendInitialEvents") || r.Method == http.MethodGet && query.Has("resourceVersion")
}

func (w *Wire) recordRequest(r *http.Request) (cut, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.Method+" "+r.URL.Path)
	n := len(w.requests)
	cut = w.cutAt > 0 && n >= w.cutAt
	w.was = w.was || cut
	return cut, w.lost && n == w.cutAt
}

// Restart lets all requests pass and resets the count.
func (w *Wire) Restart() { w.Cut(0, "") }

// Lost lets the first request that is cut reach the server, but drops its response.
const Lost = "lost"

// Cut fails all requests from the nth on; 0 fails none.
func (w *Wire) Cut(n int, how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.cutAt, w.lost, w.was = nil, n, how == Lost, false
}

// WasCut reports whether a request was cut.
func (w *Wire) WasCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.was
}

// Requests returns the requests so far, such as "GET /api/v1/namespaces/x", without discovery.
func (w *Wire) Requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.requests {
		if path := strings.Fields(r)[1]; path != "/api" && path != "/apis" && path != "/version" {
			out = append(out, r)
		}
	}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
