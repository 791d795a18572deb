// Package lagtest delays the watches of a client, for tests of controllers whose caches lag behind
// their own writes. Start with Watches.
package lagtest

import (
	"io"
	"net/http"
	"path"
	"slices"
	"sync/atomic"
	"time"
)

// Watches delays the events of some resources, in order and without reducing their rate. Events of
// other resources arrive at once: if all lagged alike, a reconcile would find nothing missing. The
// zero value delays nothing.
type Watches struct {
	// Resources are the delayed ones, such as "machines".
	Resources []string

	lag atomic.Int64
}

// Set changes the delay of all events that the API server sends from now on.
func (w *Watches) Set(lag time.Duration) { w.lag.Store(int64(lag)) }

// Wrap returns a transport with delayed watches, for rest.Config.Wrap.
func (w *Watches) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Has("watch") && slices.Contains(w.Resources, path.Base(r.URL.Path)) {
			resp.Body = w.delay(resp.Body)
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body returns what it reads once the lag has passed.
type body struct {
	io.Closer

	chunks <-chan chunk
	rest   []byte
	err    error
}

// chunk is the result of one Read.
type chunk struct {
	due  time.Time
	data []byte
	err  error
}

// delay reads ahead, so that a delayed event doesn't delay the next one further.
func (w *Watches) delay(below io.ReadCloser) *body {
	chunks := make(chan chunk, 1<<16)
	go func() {
		for {
			data := make([]byte, 32<<10)
			n, err := below.Read(data)
			chunks <- chunk{time.Now().Add(time.Duration(w.lag.Load())), data[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return &body{Closer: below, chunks: chunks}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		c := <-b.chunks
		if len(c.data) > 0 {
			time.Sleep(time.Until(c.due))
		}
		b.rest, b.err = c.data, c.err
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
