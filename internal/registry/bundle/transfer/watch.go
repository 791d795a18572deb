package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrStalled is returned for requests that make no progress.
var ErrStalled = errors.New("timed out: the registry made no progress")

// watch cancels requests that make no progress, without limiting their duration otherwise. It also
// rejects plain HTTP, to which a library may fall back for addresses on the local network.
type watch struct {
	next      http.RoundTripper
	stall     time.Duration
	plainHTTP bool
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !w.plainHTTP {
		return nil, fmt.Errorf("plain HTTP to %q is not allowed\nTry: --plain-http", r.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	p := &progress{ctx: ctx, cancel: cancel, stall: w.stall}
	p.timer = time.AfterFunc(w.stall, func() { cancel(ErrStalled) })
	r = r.Clone(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &moving{ReadCloser: r.Body, progress: p}
	}
	response, err := w.next.RoundTrip(r)
	if err != nil {
		p.end()
		return nil, p.explain(err)
	}
	response.Body = &moving{ReadCloser: response.Body, progress: p, last: true}
	return response, nil
}

// progress tracks one request.
type progress struct {
	ctx    context.Context // the context of the request, which outlives no progress
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

func (p *progress) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// explain replaces the error of a canceled request with the cause.
func (p *progress) explain(err error) error {
	if errors.Is(context.Cause(p.ctx), ErrStalled) {
		return ErrStalled
	}
	return err
}

// moving is a body that records progress.
type moving struct {
	io.ReadCloser
	*progress

	// last is set on the body that ends the request.
	last bool
}

func (m *moving) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if n > 0 {
		m.timer.Reset(m.stall)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = m.explain(err)
	}
	return n, err
}

func (m *moving) Close() error {
	if m.last {
		defer m.end()
	}
	return m.ReadCloser.Close()
}
